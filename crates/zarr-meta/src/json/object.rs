//! Objects in the order of their keys.

use std::collections::HashMap;

use super::Json;

/// A JSON object that keeps the order of its keys.
///
/// Two objects are equal when they hold the same values under the same keys in the same order.
/// Look-up by key is linear: metadata objects are small, and the large ones (consolidated
/// metadata) are walked, not searched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonObject {
    entries: Vec<(String, Json)>,
}

impl JsonObject {
    /// An object without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value under `key`, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.entries.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// True when `key` is there.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value under `key`: in its place if the key is there, else at the end. Returns the
    /// value that was there.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Json>) -> Option<Json> {
        let key = key.into();
        match self.get_mut(&key) {
            Some(place) => Some(std::mem::replace(place, value.into())),
            None => {
                self.entries.push((key, value.into()));
                None
            }
        }
    }

    /// Takes the value under `key` out; the order of the others stays.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let position = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(position).1)
    }

    /// The keys and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// The values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Json> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The object with `key` set to `value`, for building objects in one expression.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Json>) -> Self {
        self.insert(key, value);
        self
    }
}

impl<K: Into<String>, V: Into<Json>> FromIterator<(K, V)> for JsonObject {
    /// Of several equal keys the last value wins, at the place of the first.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut builder = Builder::default();
        for (key, value) in entries {
            builder.push(key.into(), value.into());
        }
        builder.finish()
    }
}

impl IntoIterator for JsonObject {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// Collects entries; finds equal keys by hash once there are many, so that a document of a million
/// keys takes linear time.
#[derive(Default)]
pub(super) struct Builder {
    object: JsonObject,
    positions: HashMap<String, usize>,
}

/// Below this many keys a linear search is cheaper than a hash.
const HASH_FROM: usize = 16;

impl Builder {
    pub(super) fn push(&mut self, key: String, value: Json) {
        let entries = &mut self.object.entries;
        if entries.len() < HASH_FROM {
            self.object.insert(key, value);
            return;
        }
        if self.positions.is_empty() {
            self.positions = entries.iter().enumerate().map(|(i, (key, _))| (key.clone(), i)).collect();
        }
        match self.positions.get(&key).and_then(|&position| entries.get_mut(position)) {
            Some((_, place)) => *place = value,
            None => {
                self.positions.insert(key.clone(), entries.len());
                entries.push((key, value));
            }
        }
    }

    pub(super) fn finish(self) -> JsonObject {
        self.object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_keys_wins_in_the_first_place() {
        let few: JsonObject = [("a", 1), ("b", 2), ("a", 3)].into_iter().collect();
        assert_eq!(few, JsonObject::new().with("a", 3).with("b", 2));

        let many: JsonObject = (0..100).map(|i| ((i % 50).to_string(), i)).collect();
        assert_eq!(many.len(), 50);
        assert_eq!(many.get("49").and_then(Json::as_u64), Some(99));
        assert_eq!(many.keys().next(), Some("0"));
    }

    #[test]
    fn removal_keeps_order() {
        let mut object = JsonObject::new().with("a", 1).with("b", 2).with("c", 3);
        assert_eq!(object.remove("b"), Some(Json::from(2)));
        assert_eq!(object.keys().collect::<Vec<_>>(), ["a", "c"]);
    }
}
