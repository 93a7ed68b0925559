//! Visits every state that can be reached.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::state::{Prune, Rules, Scene, State, Writer};
use super::steps::next;

/// What a search found.
pub enum Outcome {
    /// Nothing is lost in any of so many states; so many are ends, where everybody has ended.
    Sound { states: usize, ended: usize },
    /// The steps that lead to a loss: a shortest way.
    Loss(Vec<String>),
}

/// Searches breadth first. Of states that were visited only a hash of 64 bits is kept: of a hundred million states one is
/// passed over for another with a probability of one in 3,700.
pub fn search(rules: &Rules, scene: Scene) -> Outcome {
    let mut seen: HashSet<u64, BuildHasherDefault<AsItIs>> = HashSet::default();
    let first = State::first(scene);
    seen.insert(hash(&first));
    let mut level = vec![first];
    let (mut ended, mut depth) = (0, 0);
    while !level.is_empty() {
        depth += 1;
        let mut below = Vec::new();
        for state in level {
            ended += usize::from(is_end(&state));
            for (_, state) in next(&state, rules, scene) {
                if seen.insert(hash(&state)) {
                    if state.lost() != 0 {
                        return Outcome::Loss(way_to_loss(rules, scene, depth));
                    }
                    below.push(state);
                }
            }
        }
        level = below;
    }
    Outcome::Sound {
        states: seen.len(),
        ended,
    }
}

/// A shortest way to a loss, which takes so many steps.
fn way_to_loss(rules: &Rules, scene: Scene, steps: usize) -> Vec<String> {
    // For each state the number of the one before, and the step from there.
    let mut origins: Vec<(usize, String)> = vec![(0, "at first".to_owned())];
    let mut seen: HashSet<u64, BuildHasherDefault<AsItIs>> = HashSet::default();
    let mut level = vec![(0, State::first(scene))];
    for _ in 0..steps {
        let mut below = Vec::new();
        for (number, state) in level {
            for (step, state) in next(&state, rules, scene) {
                if !seen.insert(hash(&state)) {
                    continue;
                }
                origins.push((number, step));
                let found = origins.len() - 1;
                if state.lost() != 0 {
                    return way(&origins, found);
                }
                below.push((found, state));
            }
        }
        level = below;
    }
    Vec::new()
}

fn hash(state: &State) -> u64 {
    let mut bytes = Collected(Vec::with_capacity(128));
    state.hash(&mut bytes);
    let hash = blake3::hash(&bytes.0);
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
}

/// What is to be hashed.
struct Collected(Vec<u8>);

impl Hasher for Collected {
    fn finish(&self) -> u64 {
        unreachable!("the bytes are what is wanted")
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// For what is a hash already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

fn is_end(state: &State) -> bool {
    state.writers.iter().all(|it| *it == Writer::Ended)
        && state.prunes.iter().all(|it| *it == Prune::Ended)
}

fn way(origins: &[(usize, String)], mut at: usize) -> Vec<String> {
    let mut steps = Vec::new();
    while at != 0 {
        let (before, step) = &origins[at];
        steps.push(step.clone());
        at = *before;
    }
    steps.reverse();
    steps
}
