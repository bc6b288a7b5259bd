//! A YAML value of any shape.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use zeroize::Zeroizing;

/// A value and where it stands.
pub(super) struct Node {
    /// Line in the file, from 1; 0 where it is not known.
    pub(super) line: u64,
    pub(super) value: Value,
}

/// A value. Text is wiped when dropped, as any of it may be a token.
pub(super) enum Value {
    Null,
    Bool(bool),
    Text(Zeroizing<String>),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Value {
    /// What it is, for messages.
    pub(super) const fn shape(&self) -> &'static str {
        match self {
            Self::Null => "empty",
            Self::Bool(_) => "true or false",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            value: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

fn text(value: &impl ToString) -> Value {
    Value::Text(Zeroizing::new(value.to_string()))
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(text(&value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(text(&value))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(text(&value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(text(&value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(text(&value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(Zeroizing::new(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(Zeroizing::new(value)))
    }

    fn visit_bytes<E>(self, _value: &[u8]) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Value>()? {
            let key = match key {
                Value::Text(text) => text.to_string(),
                Value::Bool(value) => value.to_string(),
                Value::Null => String::new(),
                Value::List(_) | Value::Map(_) => {
                    return Err(A::Error::custom("a key is not text"));
                }
            };
            map.push((key, entries.next_value()?));
        }
        Ok(Value::Map(map))
    }
}
