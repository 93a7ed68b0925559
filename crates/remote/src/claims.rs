//! Creating an object at most once, on servers that know no put-if-absent or take no notice of it.
//!
//! A server that is asked to put an object only where there is none may do so, refuse to understand, or
//! ignore the condition and overwrite what is there ([`honours_conditions`] finds out). In the last two cases
//! clients agree among themselves ([`create`]), by objects `claims/NAME/RANDOM`:
//!
//! 1. put an own claim;
//! 2. list the claims: if another one is there, delete the own, wait a random while, begin anew;
//! 3. look whether the object is there: if it is, delete the own claim: it exists;
//! 4. put the object, and delete the own claim.
//!
//! It rests on this of the server: what was put or deleted is seen by every listing and reading that begins
//! after the call has returned. Then at most one of several clients gets from step 2 to step 4 before the
//! object is there: each puts its claim before it lists, so of two that overlap at least one sees the other;
//! and who lists when the other's claim has gone sees the object in step 3, for that was put before the claim
//! went. Nobody's clock counts. The price: a client that dies between 1 and 4 leaves a claim that
//! nobody takes away, for nobody can know that it will not go on. Then the creation is refused, naming the
//! claim for a person to delete.

use std::time::Duration;

use engine::object::{ObjectId, PutOutcome};

/// Where claims lie, and the objects that servers are tried with.
pub(crate) const CLAIMS_DIRECTORY: &str = "claims";

/// How often claims are tried; with the waits between, some twenty seconds.
const ATTEMPTS: u32 = 12;

/// The longest random wait after the first attempt; it doubles up to [`WAIT_MAX`].
const WAIT_FIRST: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(3);

/// What a server answers to a put under a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionalPut {
    /// It says that the object was not there and now is.
    Done,
    /// It says that the object was there.
    Refused,
    /// It does not understand the condition.
    NotUnderstood,
}

/// What claims need of a server: names of objects below the prefix.
pub(crate) trait Names {
    type Error;
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Self::Error>;
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<ConditionalPut, Self::Error>;
    fn exists(&self, name: &str) -> Result<bool, Self::Error>;
    /// Names right below a directory, with it in front.
    fn list(&self, directory: &str) -> Result<Vec<String>, Self::Error>;
    fn delete(&self, name: &str) -> Result<(), Self::Error>;
    /// Waits, for others to finish.
    fn pause(&self, wait: Duration);
}

/// Why an object was not created.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClaimError<E> {
    /// The server.
    Server(E),
    /// Somebody else claims it and does not go on: the name of the claim.
    Held(String),
}

/// Does the server put an object only where there is none, when it is asked to?
pub(crate) fn honours_conditions<N: Names>(names: &N) -> Result<bool, N::Error> {
    let name = format!("{CLAIMS_DIRECTORY}/probe/{}", ObjectId::random());
    let twice = || {
        let first = names.put_if_absent(&name, b"first")?;
        if first != ConditionalPut::Done {
            return Ok(false);
        }
        Ok(names.put_if_absent(&name, b"second")? == ConditionalPut::Refused)
    };
    let honoured = twice();
    // Also where it failed half-way. Where nothing may be deleted it stays: nobody ever looks for that name.
    let _ = names.delete(&name);
    honoured
}

/// Puts `bytes` under `name` by `put` unless an object is there, without the server's help.
pub(crate) fn create<N: Names>(
    names: &N,
    name: &str,
    put: impl Fn() -> Result<(), N::Error>,
) -> Result<PutOutcome, ClaimError<N::Error>> {
    let directory = format!("{CLAIMS_DIRECTORY}/{}", name.replace('/', "-"));
    let mut wait_max = WAIT_FIRST;
    let mut other = String::new();
    for _ in 0..ATTEMPTS {
        if names.exists(name).map_err(ClaimError::Server)? {
            return Ok(PutOutcome::Exists);
        }
        let own = format!("{directory}/{}", ObjectId::random());
        names.put(&own, b"").map_err(ClaimError::Server)?;
        let outcome = attempt(names, name, &directory, &own, &put);
        let withdrawn = names.delete(&own);
        match outcome.map_err(ClaimError::Server)? {
            // The object is there, which is looked for before claims: one that stays is in nobody's way.
            Attempt::Over(outcome) => return Ok(outcome),
            Attempt::Seen(claim) => other = claim,
        }
        withdrawn.map_err(ClaimError::Server)?;
        names.pause(random_part(wait_max));
        wait_max = (wait_max * 2).min(WAIT_MAX);
    }
    Err(ClaimError::Held(other))
}

enum Attempt {
    Over(PutOutcome),
    /// Another claim was there.
    Seen(String),
}

fn attempt<N: Names>(
    names: &N,
    name: &str,
    directory: &str,
    own: &str,
    put: impl Fn() -> Result<(), N::Error>,
) -> Result<Attempt, N::Error> {
    let claims = names.list(directory)?;
    if let Some(other) = claims.into_iter().find(|claim| claim != own) {
        return Ok(Attempt::Seen(other));
    }
    if names.exists(name)? {
        return Ok(Attempt::Over(PutOutcome::Exists));
    }
    put()?;
    Ok(Attempt::Over(PutOutcome::Created))
}

/// A random part of a wait, so that those who wait for each other do not come back together.
pub(crate) fn random_part(wait: Duration) -> Duration {
    let id = ObjectId::random().0;
    let number = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
    wait.mul_f64(f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::{Barrier, Mutex};
    use std::thread;

    /// A server in memory.
    struct Server {
        objects: Mutex<BTreeMap<String, Vec<u8>>>,
        manner: Manner,
        /// Whether clients look for claims of others: not, to see that tests notice.
        blind: bool,
        /// Whether claims can be deleted.
        keeps: bool,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Manner {
        Honest,
        Ignoring,
        Refusing,
    }

    impl Server {
        fn new(manner: Manner) -> Self {
            Self {
                objects: Mutex::default(),
                manner,
                blind: false,
                keeps: false,
            }
        }

        fn names(&self) -> Vec<String> {
            crate::lock(&self.objects).keys().cloned().collect()
        }
    }

    impl Names for Server {
        type Error = String;

        fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
            thread::yield_now();
            crate::lock(&self.objects).insert(name.to_owned(), bytes.to_vec());
            Ok(())
        }

        fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<ConditionalPut, String> {
            if self.manner == Manner::Refusing {
                return Ok(ConditionalPut::NotUnderstood);
            }
            if self.manner == Manner::Honest && self.exists(name)? {
                return Ok(ConditionalPut::Refused);
            }
            self.put(name, bytes).map(|()| ConditionalPut::Done)
        }

        fn exists(&self, name: &str) -> Result<bool, String> {
            thread::yield_now();
            Ok(crate::lock(&self.objects).contains_key(name))
        }

        fn list(&self, directory: &str) -> Result<Vec<String>, String> {
            thread::yield_now();
            let mut names = self.names();
            names.retain(|name| !self.blind && name.starts_with(directory));
            Ok(names)
        }

        fn delete(&self, name: &str) -> Result<(), String> {
            if self.keeps {
                return Err("denied".to_owned());
            }
            crate::lock(&self.objects).remove(name);
            Ok(())
        }

        fn pause(&self, wait: Duration) {
            thread::sleep(wait / 50);
        }
    }

    #[test]
    fn servers_are_found_out() {
        for (manner, honours) in [
            (Manner::Honest, true),
            (Manner::Ignoring, false),
            (Manner::Refusing, false),
        ] {
            let server = Server::new(manner);
            assert_eq!(honours_conditions(&server), Ok(honours));
            assert!(server.names().is_empty(), "nothing is left");
        }
    }

    /// How many of eight clients think that they have created the object.
    fn creators(server: &Server, round: usize) -> usize {
        let start = Barrier::new(8);
        let name = format!("config-{round}");
        let created = thread::scope(|scope| {
            let clients: Vec<_> = (0..8u8)
                .map(|client| {
                    let (start, name) = (&start, &name);
                    scope.spawn(move || {
                        start.wait();
                        let put = || server.put(name, &[client]);
                        (client, create(server, name, put).unwrap())
                    })
                })
                .collect();
            let outcomes = clients.into_iter().map(|client| client.join().unwrap());
            let created = outcomes.filter(|(_, outcome)| *outcome == PutOutcome::Created);
            created.map(|(client, _)| client).collect::<Vec<_>>()
        });
        if let [winner] = created[..] {
            assert_eq!(crate::lock(&server.objects)[&name], [winner]);
        }
        created.len()
    }

    #[test]
    fn one_of_many_creates() {
        let server = Server::new(Manner::Ignoring);
        for round in 0..20 {
            assert_eq!(creators(&server, round), 1);
        }
        let left = server.names();
        assert!(left.iter().all(|name| !name.starts_with("claims")));
    }

    #[test]
    fn without_looking_for_claims_several_would() {
        let server = Server {
            blind: true,
            ..Server::new(Manner::Ignoring)
        };
        assert!((0..200).any(|round| creators(&server, round) > 1));
    }

    #[test]
    fn a_claim_that_stays_is_named() {
        let server = Server::new(Manner::Ignoring);
        server.put("claims/config/dead", b"").unwrap();
        let put = || panic!("somebody else may be about to");
        let outcome = create(&server, "config", put);
        let held = "claims/config/dead".to_owned();
        assert_eq!(outcome, Err(ClaimError::Held(held)));
        assert_eq!(server.names(), ["claims/config/dead"]);
        server.delete("claims/config/dead").unwrap();
        let put = || server.put("config", b"x");
        assert_eq!(create(&server, "config", put), Ok(PutOutcome::Created));
        let put = || panic!("it is there");
        assert_eq!(create(&server, "config", put), Ok(PutOutcome::Exists));
    }

    #[test]
    fn a_claim_that_cannot_be_deleted_does_not_undo_the_creation() {
        let server = Server {
            keeps: true,
            ..Server::new(Manner::Ignoring)
        };
        let put = || server.put("config", b"x");
        assert_eq!(create(&server, "config", put), Ok(PutOutcome::Created));
        assert_eq!(create(&server, "config", put), Ok(PutOutcome::Exists));
    }

    /// Every order in which the steps of two clients can come: 1 claim, 2 list, 3 look, 4 put, 5 delete.
    #[test]
    fn no_order_of_two_clients_creates_twice() {
        #[derive(Clone, Default)]
        struct Client {
            step: u8,
            puts: bool,
        }
        #[derive(Clone, Default)]
        struct World {
            claims: [bool; 2],
            object: bool,
            puts: u32,
            clients: [Client; 2],
        }
        fn explore(world: &World, states: &mut u32) {
            *states += 1;
            assert!(world.puts <= 1, "the object was put twice");
            for number in 0..2 {
                let mut next = world.clone();
                match next.clients[number].step {
                    0 => next.claims[number] = true,
                    1 => next.clients[number].puts = !next.claims[1 - number],
                    2 => next.clients[number].puts &= !next.object,
                    3 if next.clients[number].puts => {
                        next.object = true;
                        next.puts += 1;
                    }
                    3 => {}
                    4 => next.claims[number] = false,
                    _ => continue,
                }
                next.clients[number].step += 1;
                explore(&next, states);
            }
        }
        let mut states = 0;
        explore(&World::default(), &mut states);
        assert!(states > 500, "{states}");
    }
}
