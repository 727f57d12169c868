//! Which look a series has in pictures for print: the same in all of them.

use std::collections::{BTreeMap, BTreeSet};

/// The looks of series in pictures for print, by name.
///
/// A look is a number, from which come hue, marker, dashes and pattern. A name keeps its look in
/// every picture, and the names of one picture have different ones.
#[derive(Debug, Clone, Default)]
pub struct Looks {
    numbers: BTreeMap<String, usize>,
    /// Names that stand with a name in some picture.
    together: BTreeMap<String, BTreeSet<String>>,
}

impl Looks {
    /// Gives the names of more pictures their looks, in order: to a name that has none, the first
    /// that no name beside it has. Names that are known keep theirs.
    pub fn add(&mut self, pictures: &[Vec<String>]) {
        for names in pictures {
            for name in names {
                let others = names.iter().filter(|other| *other != name).cloned();
                self.together
                    .entry(name.clone())
                    .or_default()
                    .extend(others);
            }
        }
        for name in pictures.iter().flatten() {
            if self.numbers.contains_key(name) {
                continue;
            }
            let beside = self.together.get(name).into_iter().flatten();
            let taken: BTreeSet<usize> = beside
                .filter_map(|other| self.numbers.get(other).copied())
                .collect();
            let free = (0..).find(|number| !taken.contains(number));
            self.numbers
                .extend(free.map(|number| (name.clone(), number)));
        }
    }

    /// The look of a name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(list: &[u8]) -> Vec<String> {
        list.iter().map(|n| format!("s{n}")).collect()
    }

    #[test]
    fn a_name_keeps_its_look_when_pictures_come_later() {
        let mut looks = Looks::default();
        looks.add(&[names(&[1, 2]), names(&[2, 3])]);
        let before = ["s1", "s2", "s3"].map(|name| looks.number(name));
        assert_eq!(before, [Some(0), Some(1), Some(0)]);
        looks.add(&[names(&[4, 2]), names(&[3, 4])]);
        assert_eq!(["s1", "s2", "s3"].map(|name| looks.number(name)), before);
        assert_eq!(looks.number("s4"), Some(2));
        assert_eq!(looks.number("s5"), None);
    }

    proptest! {
        #[test]
        fn names_of_one_picture_have_different_looks(
            pictures in prop::collection::vec(prop::collection::btree_set(0u8..40, 1..12), 1..30)
        ) {
            let pictures: Vec<Vec<String>> = pictures
                .iter()
                .map(|set| names(&set.iter().copied().collect::<Vec<_>>()))
                .collect();
            let mut looks = Looks::default();
            looks.add(&pictures);
            for picture in &pictures {
                let numbers: BTreeSet<_> = picture.iter().map(|n| looks.number(n).unwrap()).collect();
                prop_assert_eq!(numbers.len(), picture.len());
            }
        }
    }
}
