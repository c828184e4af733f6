//! The secret that the processes of a cluster share, and what is proved with it.

use std::fmt;

use ring::hmac;

use dhole_net::SecretError;

/// Bytes of a proof: those of SHA-256.
pub(crate) const PROOF_BYTES: usize = 32;

/// What only the processes of one cluster know. It is shown by no `Debug`, and does not travel.
pub struct Secret(hmac::Key);

impl Secret {
    /// The fewest bytes a secret has: 128 bits, which nobody finds by trying.
    pub const FEWEST_BYTES: usize = 16;
    /// The most bytes that are read of a file or pipe.
    pub const MOST_BYTES: usize = 4096;

    /// A secret of these bytes, without the white space at the end, which editors put there.
    ///
    /// # Errors
    /// [`SecretError::Short`] and [`SecretError::Long`].
    pub fn new(bytes: &[u8]) -> Result<Secret, SecretError> {
        if bytes.len() > Self::MOST_BYTES {
            let most = Self::MOST_BYTES;
            return Err(SecretError::Long { most });
        }
        let bytes = bytes.trim_ascii_end();
        if bytes.is_empty() {
            return Err(SecretError::Empty);
        }
        if bytes.len() < Self::FEWEST_BYTES {
            return Err(SecretError::Short {
                bytes: bytes.len(),
                fewest: Self::FEWEST_BYTES,
            });
        }
        Ok(Secret(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// A proof that its maker knows the secret and means `said`.
    pub(crate) fn prove(&self, said: &[&[u8]]) -> [u8; PROOF_BYTES] {
        let mut context = hmac::Context::with_key(&self.0);
        for part in said {
            // Each part's length goes before it, so that no two lists of parts read alike.
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut proof = [0; PROOF_BYTES];
        proof.copy_from_slice(context.sign().as_ref());
        proof
    }

    /// Whether `proof` is one of `said`; takes as long for any wrong one.
    pub(crate) fn proves(&self, said: &[&[u8]], proof: &[u8]) -> bool {
        let mut all = Vec::new();
        for part in said {
            all.extend_from_slice(&(part.len() as u64).to_le_bytes());
            all.extend_from_slice(part);
        }
        hmac::verify(&self.0, &all, proof).is_ok()
    }

    /// A secret of one conversation, made of this one and `said`.
    pub(crate) fn derive(&self, said: &[&[u8]]) -> Secret {
        Secret(hmac::Key::new(hmac::HMAC_SHA256, &self.prove(said)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_secret_is_shown() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_secret_that_can_be_guessed_or_is_endless_is_refused() {
        let short = Secret::new(b"0123456789abcde\n").unwrap_err();
        assert!(matches!(short, SecretError::Short { bytes: 15, .. }));
        let long = Secret::new(&[7; Secret::MOST_BYTES + 1]).unwrap_err();
        assert!(matches!(long, SecretError::Long { .. }));
    }

    #[test]
    fn a_proof_is_of_the_parts_as_they_were_divided() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let proof = secret.prove(&[b"ab", b"c"]);
        assert!(secret.proves(&[b"ab", b"c"], &proof));
        assert!(!secret.proves(&[b"a", b"bc"], &proof));
        assert!(!secret.proves(&[b"ab", b"c"], &proof[..31]));
        let other = Secret::new(b"0123456789abcdeF").unwrap();
        assert!(!other.proves(&[b"ab", b"c"], &proof));
    }
}
