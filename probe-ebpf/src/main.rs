//! joinprobe's kernel side.
#![no_std]
#![no_main]
