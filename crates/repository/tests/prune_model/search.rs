//! Visits every state that can be reached.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::state::{Prune, Rules, Scene, State, Writer};
use super::steps::next;

/// What a search found.
pub enum Outcome {
    /// Nothing is lost in any of so many states; so many are ends, where everybody has ended.
    Sound { states: usize, ended: usize },
    /// The steps that lead to a loss: a shortest way.
    Loss(Vec<String>),
}

/// Searches breadth first.
pub fn search(rules: &Rules, scene: Scene) -> Outcome {
    let first = State::first(scene);
    // For each state the number of the one before, and the step from there.
    let mut seen: HashMap<State, usize> = HashMap::from([(first.clone(), 0)]);
    let mut origins: Vec<(usize, String)> = vec![(0, "at first".to_owned())];
    let mut level = vec![(0, first)];
    let mut ended = 0;
    while !level.is_empty() {
        let mut below = Vec::new();
        for (number, state) in level {
            ended += usize::from(is_end(&state));
            for (step, state) in next(&state, rules, scene) {
                let is_loss = state.lost() != 0;
                let found = origins.len();
                match seen.entry(state) {
                    Entry::Occupied(_) => continue,
                    Entry::Vacant(vacant) => {
                        below.push((found, vacant.key().clone()));
                        vacant.insert(found);
                    }
                }
                origins.push((number, step));
                if is_loss {
                    return Outcome::Loss(trace(&origins, found));
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

fn is_end(state: &State) -> bool {
    state.writers.iter().all(|it| *it == Writer::Ended)
        && state.prunes.iter().all(|it| *it == Prune::Ended)
}

fn trace(origins: &[(usize, String)], mut at: usize) -> Vec<String> {
    let mut steps = Vec::new();
    while at != 0 {
        let (before, step) = &origins[at];
        steps.push(step.clone());
        at = *before;
    }
    steps.reverse();
    steps
}
