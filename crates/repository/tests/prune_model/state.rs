//! What the store holds, and how far everybody is.

/// Slots: bits of a mask. The first two are of one logical container, the others of one each.
pub type Slots = u8;
/// Objects, runs and markers by their numbers: bits of a mask.
pub type Set = u16;

/// The slot that the first snapshot needs.
pub const KEPT: Slots = 1;
/// Beside it in its container: nobody needs it at first.
pub const BESIDE: Slots = 2;
/// In a container of its own: nobody needs it at first.
pub const ALONE: Slots = 4;
/// What writer `n` stores where it finds nothing: its copies of the two.
pub const fn own(writer: usize) -> [(Slots, Slots); 2] {
    match writer {
        0 => [(BESIDE, 8), (ALONE, 16)],
        _ => [(BESIDE, 32), (ALONE, 64)],
    }
}

/// Which rules of the protocol hold.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub waits_for_runs: bool,
    pub condemns_before_listing_runs: bool,
    pub registers_before_looking: bool,
    pub takes_condemned_for_gone: bool,
    pub looks_for_expiry_after_snapshot: bool,
    pub rescues: bool,
    pub never_pardons: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            waits_for_runs: true,
            condemns_before_listing_runs: true,
            registers_before_looking: true,
            takes_condemned_for_gone: true,
            looks_for_expiry_after_snapshot: true,
            rescues: true,
            never_pardons: true,
        }
    }
}

/// Who is there.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    pub writers: usize,
    pub prunes: usize,
    /// How many may crash.
    pub crashes: u8,
}

impl Scene {
    pub const fn new(writers: usize, prunes: usize) -> Self {
        Self {
            writers,
            prunes,
            crashes: 1,
        }
    }

    /// The same, and nobody crashes.
    pub const fn without_crashes(self) -> Self {
        Self { crashes: 0, ..self }
    }

    /// The run's number of a prune.
    pub fn prune_run(self, prune: usize) -> usize {
        self.writers + prune
    }
}

/// Most objects that there can be: two at first, one of each writer, two of each prune.
const OBJECTS_MAX: usize = 8;

/// What condemns objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Marker {
    pub objects: Set,
    /// The runs that are waited for, once that is written down.
    pub waiting: Option<Set>,
}

/// A writer, by how far it is and what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writer {
    Begins,
    Registered,
    /// It knows what is condemned.
    KnowsCondemned(Set),
    /// It has looked at everything, and will need these.
    Needs(Slots),
    /// It has stored what it did not find.
    Stored(Slots),
    HasSnapshot,
    Checked,
    Ended,
}

/// What a prune knows when it decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prune {
    Begins,
    Registered,
    /// It will condemn, and knows what is needed.
    Marked(Slots),
    /// It will put these slots into a new object, and then condemn.
    Packs {
        slots: Slots,
        condemns: Set,
    },
    /// The new object is there.
    Packed {
        object: Option<u8>,
        condemns: Set,
    },
    /// The remap is there.
    Remapped {
        condemns: Set,
    },
    /// It has listed the runs too early (only without the rule).
    ListedFirst {
        condemns: Set,
        runs: Set,
    },
    /// The marker is there.
    Condemned {
        marker: u8,
    },
    /// The runs are listed.
    Listed {
        marker: u8,
        runs: Set,
    },
    /// It will finish this marker.
    Waits {
        marker: u8,
    },
    /// Nobody is waited for any more.
    Waited {
        marker: u8,
    },
    /// It knows what is needed now.
    MarkedAgain {
        marker: u8,
        needs: Slots,
    },
    /// It will put these into a new object first.
    Rescues {
        marker: u8,
        slots: Slots,
        deletes: Set,
    },
    Rescued {
        marker: u8,
        object: u8,
        deletes: Set,
    },
    /// It deletes these.
    Deletes {
        marker: u8,
        deletes: Set,
    },
    Deleted {
        marker: u8,
    },
    Ended,
}

/// Everything. Numbers are places: objects and markers are numbered as they come, the first snapshot is 0 and that of
/// writer n is n + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// Slots of each object; none where there is no object, or no more.
    pub objects: [Slots; OBJECTS_MAX],
    pub object_count: u8,
    /// The objects that readers look into: the containers' own, and those that remaps name.
    pub places: Set,
    pub markers: [Option<Marker>; 2],
    pub marker_count: u8,
    /// What each snapshot needs; nothing where there is none.
    pub snapshots: [Slots; 3],
    pub registered: Set,
    pub expired: Set,
    pub writers: [Writer; 2],
    pub prunes: [Prune; 2],
    /// Crashes that may still happen.
    pub crashes: u8,
}

impl State {
    pub fn first(scene: Scene) -> Self {
        let mut state = Self {
            objects: [0; OBJECTS_MAX],
            object_count: 0,
            places: 0,
            markers: [None; 2],
            marker_count: 0,
            snapshots: [KEPT, 0, 0],
            registered: 0,
            expired: 0,
            writers: [Writer::Ended; 2],
            prunes: [Prune::Ended; 2],
            crashes: scene.crashes,
        };
        state.writers[..scene.writers].fill(Writer::Begins);
        state.prunes[..scene.prunes].fill(Prune::Begins);
        state.add_object(KEPT | BESIDE, true);
        state.add_object(ALONE, true);
        state
    }

    /// Objects that any marker condemns.
    pub fn condemned(&self) -> Set {
        let markers = self.markers.iter().flatten();
        markers.fold(0, |all, marker| all | marker.objects)
    }

    /// Slots that readers find in objects that are not in `without`.
    pub fn found(&self, without: Set) -> Slots {
        let objects = self.objects.iter().enumerate();
        objects
            .filter(|(number, _)| self.places & !without & (1 << number) != 0)
            .fold(0, |all, (_, slots)| all | slots)
    }

    /// What all snapshots need, doubtful ones, too.
    pub fn needed(&self) -> Slots {
        self.snapshots.iter().fold(0, |all, needs| all | needs)
    }

    /// What is lost.
    pub fn lost(&self) -> Slots {
        let doubtful = |number: usize| number > 0 && self.expired & (1 << (number - 1)) != 0;
        let sure = (0..self.snapshots.len()).filter(|number| !doubtful(*number));
        sure.fold(0, |all, number| all | self.snapshots[number]) & !self.found(0)
    }

    pub fn add_object(&mut self, slots: Slots, is_place: bool) -> u8 {
        let number = self.object_count;
        self.objects[usize::from(number)] = slots;
        self.places |= Set::from(is_place) << number;
        self.object_count += 1;
        number
    }

    pub fn delete_object(&mut self, number: u8) {
        self.objects[usize::from(number)] = 0;
    }

    pub fn add_marker(&mut self, marker: Marker) {
        self.markers[usize::from(self.marker_count)] = Some(marker);
        self.marker_count += 1;
    }
}
