//! The cgroup hierarchy and who else hangs on its hook.

use std::io;
use std::path::Path;

use super::Check;
use crate::bpf::Layout;
use crate::bpf::host::{self, OnHook};

pub(super) fn layout(chosen: Option<&Path>) -> Check {
    if let Some(path) = chosen {
        return Check::note("cgroup", format!("--cgroup names {}", path.display()));
    }
    describe(Layout::here())
}

fn describe(layout: io::Result<Layout>) -> Check {
    const ID: &str = "cgroup";
    match layout {
        Ok(Layout { v2: Some(path), v1 }) => {
            let kind = if v1 { "hybrid" } else { "unified" };
            let path = path.display();
            Check::pass(
                ID,
                format!("the cgroup layout is {kind}, version 2 is mounted at {path}"),
            )
        }
        Ok(Layout { v2: None, v1 }) => {
            let kind = if v1 {
                "only cgroup version 1 is mounted"
            } else {
                "no cgroup hierarchy is mounted"
            };
            Check::warn(
                ID,
                format!("{kind}: joinprobe mounts version 2 for itself, which takes CAP_SYS_ADMIN"),
                "as root nothing needs doing; otherwise mount -t cgroup2 none /sys/fs/cgroup/unified",
            )
        }
        Err(error) => Check::warn(
            ID,
            format!("/proc/self/mountinfo cannot be read ({error})"),
            "mount /proc",
        ),
    }
}

pub(super) fn hook(chosen: Option<&Path>) -> Check {
    name_programs(host::on_hook(chosen))
}

fn name_programs(on_hook: io::Result<OnHook>) -> Check {
    const ID: &str = "hook";
    match on_hook {
        Ok(OnHook { programs, .. }) if programs.is_empty() => {
            Check::pass(ID, "no other sock_ops program is on the hook")
        }
        Ok(OnHook {
            programs,
            exclusive,
        }) => {
            let programs = programs.join(", ");
            if exclusive {
                Check::fail(
                    ID,
                    format!("the sock_ops hook is held by {programs}, attached without sharing"),
                    "stop what attached it, or have it attach with BPF_F_ALLOW_MULTI",
                )
            } else {
                Check::pass(ID, format!("the sock_ops hook is shared with {programs}"))
            }
        }
        Err(error) => Check::note(
            ID,
            format!("who else is on the sock_ops hook cannot be seen: {error}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckState;

    #[test]
    fn an_owner_of_the_hook_is_named() {
        let found = |exclusive| {
            Ok(OnHook {
                programs: vec!["program 17 (cil_sock)".to_owned()],
                exclusive,
            })
        };
        let owned = name_programs(found(true));
        assert_eq!(owned.state, CheckState::Fail);
        assert!(owned.text.contains("cil_sock"), "{owned:?}");
        assert_eq!(name_programs(found(false)).state, CheckState::Pass);
    }

    #[test]
    fn layouts() {
        let unified = Layout {
            v2: Some("/sys/fs/cgroup".into()),
            v1: false,
        };
        assert!(describe(Ok(unified)).text.contains("unified"));
        let v1 = describe(Ok(Layout { v2: None, v1: true }));
        assert_eq!(v1.state, CheckState::Warn);
        assert!(v1.text.contains("version 1"), "{v1:?}");
    }
}
