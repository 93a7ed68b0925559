//! Sealing a secret for the holder of a private key: HPKE (RFC 9180) with X25519, HKDF-SHA256 and
//! AES-256-GCM (docs/format/v1.md, §5.2).
//!
//! Enters: 32 bytes, a recipient's public key, and what proves the sender: a private key of its own
//! (mode *auth*) or a secret that both know (mode *psk*). Leaves: [`SEALED_BYTES`] bytes. Base mode,
//! which anybody could use, is not used at all: a store must not be able to put an epoch of its own
//! into a repository.

use std::fmt;

use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{
    Deserializable, Kem, OpModeR, OpModeS, PskBundle, Serializable, single_shot_open,
    single_shot_seal,
};
use zeroize::Zeroizing;

use super::secrets::Secret;

type Suite = X25519HkdfSha256;

/// Bytes of a public key.
pub const PUBLIC_KEY_BYTES: usize = 32;

/// Bytes of an encapsulated key: a public key used once.
const ENCAPSULATED_BYTES: usize = 32;

/// A secret as it is sealed: the encapsulated key, the ciphertext, its tag.
pub(super) const SEALED_BYTES: usize = ENCAPSULATED_BYTES + 32 + 16;

/// What names the secret that both sides know.
const PSK_ID: &[u8] = b"onefold v1 epoch of a writer";

/// An X25519 public key. It is no secret, and shown to nobody all the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub [u8; PUBLIC_KEY_BYTES]);

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicKey(..)")
    }
}

/// The key pair that a secret stands for (RFC 9180's `DeriveKeyPair`).
struct Pair {
    private: <Suite as Kem>::PrivateKey,
    public: <Suite as Kem>::PublicKey,
}

impl Pair {
    fn of(secret: &Secret) -> Self {
        let (private, public) = Suite::derive_keypair(&**secret);
        Self { private, public }
    }
}

/// The public key of the pair that a secret stands for.
pub(super) fn public_key(secret: &Secret) -> PublicKey {
    let mut bytes = [0; PUBLIC_KEY_BYTES];
    Pair::of(secret).public.write_exact(&mut bytes);
    PublicKey(bytes)
}

/// Who seals, as the recipient can tell.
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        reason = "what clients that can only write seal is read here, and made elsewhere"
    )
)]
pub(super) enum Sender<'a> {
    /// Whoever has the secret of this key pair.
    Pair(&'a Secret),
    /// Whoever has the secret that the recipient has, too.
    Shared(&'a Secret),
}

/// From whom a recipient takes something.
pub(super) enum From<'a> {
    /// From the holder of the private key of this one.
    Holder(PublicKey),
    /// From one who has this secret, too.
    Shared(&'a Secret),
}

/// Seals 32 bytes for the holder of `recipient`'s private key. `about` is authenticated with it.
/// Nothing comes of it when the public key is not one.
pub(super) fn seal(
    secret: &[u8; 32],
    recipient: PublicKey,
    sender: &Sender<'_>,
    about: &[u8],
) -> Option<[u8; SEALED_BYTES]> {
    let recipient = <Suite as Kem>::PublicKey::from_bytes(&recipient.0).ok()?;
    let mode = match sender {
        Sender::Pair(secret) => {
            let pair = Pair::of(secret);
            OpModeS::Auth((pair.private, pair.public))
        }
        Sender::Shared(secret) => OpModeS::Psk(PskBundle::new(&***secret, PSK_ID).ok()?),
    };
    let (encapsulated, ciphertext) =
        single_shot_seal::<AesGcm256, HkdfSha256, Suite>(&mode, &recipient, about, secret, about)
            .ok()?;
    let mut sealed = [0; SEALED_BYTES];
    encapsulated.write_exact(&mut sealed[..ENCAPSULATED_BYTES]);
    sealed[ENCAPSULATED_BYTES..].copy_from_slice(&ciphertext);
    Some(sealed)
}

/// Opens what was sealed for the pair of `recipient`, if it was, by whom it should be, and about
/// the same.
pub(super) fn open(
    sealed: &[u8; SEALED_BYTES],
    recipient: &Secret,
    from: &From<'_>,
    about: &[u8],
) -> Option<Secret> {
    let (encapsulated, ciphertext) = sealed.split_at(ENCAPSULATED_BYTES);
    let encapsulated = <Suite as Kem>::EncappedKey::from_bytes(encapsulated).ok()?;
    let mode = match from {
        From::Holder(public) => {
            OpModeR::Auth(<Suite as Kem>::PublicKey::from_bytes(&public.0).ok()?)
        }
        From::Shared(secret) => OpModeR::Psk(PskBundle::new(&***secret, PSK_ID).ok()?),
    };
    let opened = single_shot_open::<AesGcm256, HkdfSha256, Suite>(
        &mode,
        &Pair::of(recipient).private,
        &encapsulated,
        about,
        ciphertext,
        about,
    );
    let opened = Zeroizing::new(opened.ok()?);
    let mut secret = Zeroizing::new([0; 32]);
    secret.copy_from_slice(opened.get(..32)?);
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> Secret {
        Zeroizing::new([byte; 32])
    }

    #[test]
    fn only_the_recipient_opens_and_only_from_the_sender() {
        let (ours, theirs, sender) = (secret(1), secret(2), secret(3));
        let to = public_key(&ours);
        let sealed = seal(&[7; 32], to, &Sender::Pair(&sender), b"about").unwrap();
        let from = From::Holder(public_key(&sender));
        assert_eq!(*open(&sealed, &ours, &from, b"about").unwrap(), [7; 32]);
        assert!(open(&sealed, &theirs, &from, b"about").is_none());
        assert!(open(&sealed, &ours, &from, b"else").is_none());
        let another = From::Holder(public_key(&theirs));
        assert!(open(&sealed, &ours, &another, b"about").is_none());
        assert!(open(&sealed, &ours, &From::Shared(&sender), b"about").is_none());
        for bit in 0..SEALED_BYTES * 8 {
            let mut damaged = sealed;
            damaged[bit / 8] ^= 1 << (bit % 8);
            // X25519 does not look at the highest bit of a public key, but the keys derived do.
            assert!(open(&damaged, &ours, &from, b"about").is_none(), "{bit}");
        }
    }

    #[test]
    fn a_shared_secret_proves_the_sender() {
        let (ours, shared) = (secret(1), secret(5));
        let to = public_key(&ours);
        let sealed = seal(&[7; 32], to, &Sender::Shared(&shared), b"x").unwrap();
        let from = From::Shared(&shared);
        assert_eq!(*open(&sealed, &ours, &from, b"x").unwrap(), [7; 32]);
        let other = secret(6);
        assert!(open(&sealed, &ours, &From::Shared(&other), b"x").is_none());
    }

    /// The key pair and an export of RFC 9180, appendix A.2.1: the `DeriveKeyPair` of its `ikmR`.
    #[test]
    fn key_pairs_are_those_of_the_standard() {
        let ikm = [
            0x1a, 0xc0, 0x1f, 0x18, 0x1f, 0xdf, 0x9f, 0x35, 0x27, 0x97, 0x65, 0x51, 0x61, 0xc5,
            0x8b, 0x75, 0xc6, 0x56, 0xa6, 0xcc, 0x27, 0x16, 0xdc, 0xb6, 0x63, 0x72, 0xda, 0x83,
            0x55, 0x42, 0xe1, 0xdf,
        ];
        let public = [
            0x43, 0x10, 0xee, 0x97, 0xd8, 0x8c, 0xc1, 0xf0, 0x88, 0xa5, 0x57, 0x6c, 0x77, 0xab,
            0x0c, 0xf5, 0xc3, 0xac, 0x79, 0x7f, 0x3d, 0x95, 0x13, 0x9c, 0x6c, 0x84, 0xb5, 0x42,
            0x9c, 0x59, 0x66, 0x2a,
        ];
        assert_eq!(public_key(&Zeroizing::new(ikm)).0, public);
    }
}
