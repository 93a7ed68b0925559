//! The protocol by which a repository deletes while others work (docs/design/0015-prune.md), searched to the end:
//! two writers, two prunes, crashes and expiry at any point. In no state may a snapshot that is not doubtful need a slot
//! that no object has. Leaving out a rule of the protocol must make the search find a loss.

mod prune_model {
    pub mod search;
    pub mod state;
    pub mod steps;
}

use prune_model::search::{Outcome, search};
use prune_model::state::{Rules, Scene};

fn sound(scene: Scene) {
    match search(&Rules::default(), scene) {
        Outcome::Sound { states, ended } => {
            println!("{scene:?}: {states} states, {ended} of them ends");
            assert!(states > 1000, "{states} states: the model does nothing");
            assert!(ended > 0, "nothing ever ends");
        }
        Outcome::Loss(trace) => panic!("a loss:\n{}", trace.join("\n")),
    }
}

fn loses(rules: &Rules, scene: Scene) {
    match search(rules, scene) {
        Outcome::Sound { states, .. } => panic!("{rules:?} loses nothing in {states} states"),
        Outcome::Loss(trace) => println!("{rules:?}:\n{}\n", trace.join("\n")),
    }
}

#[test]
fn two_writers_and_a_prune_lose_nothing() {
    sound(Scene::new(2, 1));
}

#[test]
fn a_writer_and_two_prunes_lose_nothing() {
    sound(Scene::new(1, 2));
}

#[test]
#[ignore = "takes long: cargo test --release -p onefold-repository --test prune_model -- --ignored"]
fn two_writers_and_two_prunes_lose_nothing() {
    sound(Scene::new(2, 2));
}

#[test]
fn every_rule_is_needed() {
    let all = Rules::default();
    let one = Scene::new(1, 1);
    loses(
        &Rules {
            waits_for_runs: false,
            ..all
        },
        one,
    );
    loses(
        &Rules {
            condemns_before_listing_runs: false,
            ..all
        },
        one,
    );
    loses(
        &Rules {
            registers_before_looking: false,
            ..all
        },
        one,
    );
    loses(
        &Rules {
            takes_condemned_for_gone: false,
            ..all
        },
        one,
    );
    loses(
        &Rules {
            looks_for_expiry_after_snapshot: false,
            ..all
        },
        one,
    );
    loses(
        &Rules {
            rescues: false,
            ..all
        },
        one,
    );
}

#[test]
#[ignore = "takes a minute: cargo test --release -p onefold-repository --test prune_model -- --ignored"]
fn what_is_condemned_must_not_be_pardoned() {
    let rules = Rules {
        never_pardons: false,
        ..Rules::default()
    };
    loses(&rules, Scene::new(2, 2).without_crashes());
}
