//! What may happen next: each step looks at the store or changes it once.

use super::state::{Marker, Prune, Rules, Scene, Set, State, Writer, own};

/// What a state may become, and how.
pub fn next(state: &State, rules: &Rules, scene: Scene) -> Vec<(String, State)> {
    let mut all = Vec::new();
    for writer in 0..scene.writers {
        step_writer(state, rules, writer, &mut all);
    }
    for prune in 0..scene.prunes {
        step_prune(state, rules, scene, prune, &mut all);
    }
    environment(state, scene, &mut all);
    all
}

type Next = Vec<(String, State)>;

/// Somebody crashes, a run is taken for dead, a snapshot is forgotten.
fn environment(state: &State, scene: Scene, all: &mut Next) {
    if state.crashes > 0 {
        for writer in 0..scene.writers {
            if !matches!(state.writers[writer], Writer::Begins | Writer::Ended) {
                let mut next = *state;
                next.writers[writer] = Writer::Ended;
                next.crashes -= 1;
                all.push((format!("writer {writer} dies"), next));
            }
        }
        for prune in 0..scene.prunes {
            if !matches!(state.prunes[prune], Prune::Begins | Prune::Ended) {
                let mut next = *state;
                next.prunes[prune] = Prune::Ended;
                next.crashes -= 1;
                all.push((format!("prune {prune} dies"), next));
            }
        }
    }
    // Only a prune that waits for it takes a run for dead, but at any time, rightly or not.
    let waited = state.prunes.iter().fold(0, |all: Set, prune| match prune {
        Prune::Waits { marker } => {
            let marker = state.markers[usize::from(*marker)];
            all | marker.and_then(|marker| marker.waiting).unwrap_or(0)
        }
        _ => all,
    });
    for run in 0..scene.writers + scene.prunes {
        if waited & state.registered & !state.expired & (1 << run) != 0 {
            let mut next = *state;
            next.expired |= 1 << run;
            all.push((format!("run {run} is expired"), next));
        }
    }
    for number in 0..state.snapshots.len() {
        // The writer deletes its own if it must.
        let is_finished = number == 0 || state.writers[number - 1] == Writer::Ended;
        if state.snapshots[number] != 0 && is_finished {
            let mut next = *state;
            next.snapshots[number] = 0;
            all.push((format!("snapshot {number} is forgotten"), next));
        }
    }
}

fn step_writer(state: &State, rules: &Rules, writer: usize, all: &mut Next) {
    let mut next = *state;
    let bit: Set = 1 << writer;
    let what = match state.writers[writer] {
        Writer::Begins => {
            if rules.registers_before_looking {
                next.registered |= bit;
            }
            next.writers[writer] = Writer::Registered;
            "registers"
        }
        Writer::Registered => {
            let condemned = match rules.takes_condemned_for_gone {
                true => state.condemned(),
                false => 0,
            };
            next.writers[writer] = Writer::KnowsCondemned(condemned);
            "reads what is condemned"
        }
        Writer::KnowsCondemned(condemned) => {
            let found = state.found(condemned);
            let needs = own(writer).into_iter().fold(0, |all, (wanted, copy)| {
                all | if found & wanted != 0 { wanted } else { copy }
            });
            next.writers[writer] = Writer::Needs(needs);
            "looks for its chunks"
        }
        Writer::Needs(needs) => {
            let copies = own(writer).into_iter().fold(0, |all, (_, copy)| all | copy);
            if needs & copies != 0 {
                next.add_object(needs & copies, true);
            }
            next.writers[writer] = Writer::Stored(needs);
            "stores what it did not find"
        }
        Writer::Stored(needs) => {
            if !rules.registers_before_looking {
                next.registered |= bit;
            }
            next.snapshots[writer + 1] = needs;
            next.writers[writer] = Writer::HasSnapshot;
            "writes its snapshot"
        }
        Writer::HasSnapshot => {
            if !rules.looks_for_expiry_after_snapshot {
                // It is taken for good, whatever others think.
                next.expired &= !bit;
            } else if state.expired & bit != 0 {
                next.snapshots[writer + 1] = 0;
            }
            next.writers[writer] = Writer::Checked;
            "looks whether it has expired"
        }
        Writer::Checked => {
            next.registered &= !bit;
            next.writers[writer] = Writer::Ended;
            "ends"
        }
        Writer::Ended => return,
    };
    all.push((format!("writer {writer} {what}"), next));
}

fn step_prune(state: &State, rules: &Rules, scene: Scene, prune: usize, all: &mut Next) {
    let mut to = |what: &str, to: Prune, change: &dyn Fn(&mut State)| {
        let mut next = *state;
        change(&mut next);
        next.prunes[prune] = to;
        all.push((format!("prune {prune} {what}"), next));
    };
    let bit: Set = 1 << scene.prune_run(prune);
    let none = |_: &mut State| ();
    match state.prunes[prune] {
        Prune::Begins => to("registers", Prune::Registered, &|next| {
            next.registered |= bit
        }),
        Prune::Registered => {
            // It finishes what another has condemned, or condemns itself.
            for (number, marker) in state.markers.iter().enumerate() {
                if marker.is_some() {
                    let marker = number as u8;
                    to("finds a marker", Prune::Waits { marker }, &none);
                }
            }
            to("marks", Prune::Marked(state.needed()), &none);
        }
        Prune::Marked(needs) => {
            let (slots, condemns) = decide(state, needs);
            if condemns == 0 {
                to("has nothing to do", Prune::Ended, &|next| {
                    next.registered &= !bit
                });
            } else {
                to("decides", Prune::Packs { slots, condemns }, &none);
            }
        }
        Prune::Packs { slots, condemns } => {
            let mut next = *state;
            let object = (slots != 0).then(|| next.add_object(slots, false));
            next.prunes[prune] = Prune::Packed { object, condemns };
            all.push((format!("prune {prune} packs"), next));
        }
        Prune::Packed { object, condemns } => {
            let remap = |next: &mut State| make_place(next, object);
            to("remaps", Prune::Remapped { condemns }, &remap);
        }
        Prune::Remapped { condemns } if !rules.condemns_before_listing_runs => {
            let runs = state.registered & !bit;
            to(
                "lists runs first",
                Prune::ListedFirst { condemns, runs },
                &none,
            );
        }
        Prune::Remapped { condemns } => {
            let marker = state.marker_count;
            to("condemns", Prune::Condemned { marker }, &|next| {
                next.add_marker(Marker {
                    objects: condemns,
                    waiting: None,
                });
            });
        }
        Prune::ListedFirst { condemns, runs } => {
            let marker = state.marker_count;
            to("condemns", Prune::Waits { marker }, &|next| {
                next.add_marker(Marker {
                    objects: condemns,
                    waiting: Some(runs),
                });
            });
        }
        Prune::Condemned { marker } => {
            let runs = state.registered & !bit;
            to("lists runs", Prune::Listed { marker, runs }, &none);
        }
        Prune::Listed { marker, runs } => {
            to(
                "writes the waiting list",
                Prune::Waits { marker },
                &|next| {
                    if let Some(marker) = &mut next.markers[usize::from(marker)] {
                        marker.waiting = Some(runs | marker.waiting.unwrap_or(0));
                    }
                },
            );
        }
        Prune::Waits { marker } => match state.markers[usize::from(marker)] {
            None => to("finds it finished", Prune::Ended, &|next| {
                next.registered &= !bit
            }),
            Some(Marker { waiting: None, .. }) => {
                // Who condemned died before it listed runs: this one does.
                let runs = state.registered & !bit;
                to("lists runs", Prune::Listed { marker, runs }, &none);
            }
            Some(Marker {
                waiting: Some(waiting),
                ..
            }) => {
                let at_work = waiting & state.registered & !state.expired & !bit;
                if at_work == 0 || !rules.waits_for_runs {
                    to("need not wait", Prune::Waited { marker }, &none);
                }
            }
        },
        Prune::Waited { marker } => {
            let needs = state.needed();
            to("marks again", Prune::MarkedAgain { marker, needs }, &none);
        }
        Prune::MarkedAgain { marker, needs } => {
            let Some(condemned) = state.markers[usize::from(marker)] else {
                to("finds it finished", Prune::Ended, &|next| {
                    next.registered &= !bit
                });
                return;
            };
            let missing = needs & !state.found(state.condemned());
            let slots = missing & state.found(0);
            let mut deletes = condemned.objects;
            if !rules.never_pardons {
                // What is needed stays as it is, and is condemned no more.
                for (number, slots) in state.objects.iter().enumerate() {
                    if slots & missing != 0 {
                        deletes &= !(1 << number);
                    }
                }
                to("pardons", Prune::Deletes { marker, deletes }, &none);
            } else if slots != 0 && rules.rescues {
                to(
                    "must rescue",
                    Prune::Rescues {
                        marker,
                        slots,
                        deletes,
                    },
                    &none,
                );
            } else {
                to("need not rescue", Prune::Deletes { marker, deletes }, &none);
            }
        }
        Prune::Rescues {
            marker,
            slots,
            deletes,
        } => {
            // It reads them now; what is gone was deleted by somebody who saw it elsewhere.
            let mut next = *state;
            let object = next.add_object(slots & state.found(0), false);
            next.prunes[prune] = Prune::Rescued {
                marker,
                object,
                deletes,
            };
            all.push((format!("prune {prune} packs what it rescues"), next));
        }
        Prune::Rescued {
            marker,
            object,
            deletes,
        } => {
            let remap = |next: &mut State| make_place(next, Some(object));
            to(
                "remaps what it rescued",
                Prune::Deletes { marker, deletes },
                &remap,
            );
        }
        Prune::Deletes { marker, deletes } => {
            if deletes == 0 {
                to("has deleted", Prune::Deleted { marker }, &none);
                return;
            }
            let object = deletes.trailing_zeros() as u8;
            let left = deletes & (deletes - 1);
            let after = Prune::Deletes {
                marker,
                deletes: left,
            };
            to(&format!("deletes object {object}"), after, &|next| {
                next.delete_object(object);
            });
        }
        Prune::Deleted { marker } => to("removes the marker", Prune::Ended, &|next| {
            next.markers[usize::from(marker)] = None;
            next.registered &= !bit;
        }),
        Prune::Ended => {}
    }
}

/// Slots to be packed into a new object, and objects to be condemned.
fn decide(state: &State, needs: u8) -> (u8, Set) {
    let condemned = state.condemned();
    let (mut kept, mut packed, mut condemns) = (0, 0, 0);
    for (number, slots) in state.objects.iter().enumerate().rev() {
        if *slots == 0 || condemned & (1 << number) != 0 {
            continue;
        }
        let is_place = state.places & (1 << number) != 0;
        let (useful, useless) = (slots & needs & !kept, slots & !needs);
        if !is_place || useful == 0 {
            condemns |= 1 << number;
        } else if useless != 0 {
            condemns |= 1 << number;
            packed |= useful;
        } else {
            kept |= useful;
        }
    }
    (packed & !kept, condemns)
}

fn make_place(next: &mut State, object: Option<u8>) {
    if let Some(object) = object {
        next.places |= 1 << object;
    }
}
