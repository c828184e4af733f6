//! Values that are the whole of some bytes.

use serde::de::DeserializeOwned;

/// The value of these bytes, which are nothing else: postcard's own function leaves out what lies
/// behind a value.
///
/// # Errors
/// As postcard's; [`postcard::Error::DeserializeBadEncoding`] where bytes are left over.
pub fn decode_whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, postcard::Error> {
    match postcard::take_from_bytes(bytes)? {
        (value, []) => Ok(value),
        _ => Err(postcard::Error::DeserializeBadEncoding),
    }
}

/// The value at the beginning of these bytes, which then are those behind it.
///
/// # Errors
/// As postcard's; then the bytes are as before.
pub fn decode_next<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, postcard::Error> {
    let (value, behind) = postcard::take_from_bytes(bytes)?;
    *bytes = behind;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_behind_a_value_are_refused() {
        let bytes = postcard::to_allocvec(&(7_u64, "words")).unwrap();
        assert_eq!(decode_whole(&bytes), Ok((7_u64, String::from("words"))));
        let behind = [&bytes[..], &[0]].concat();
        let refused = Err(postcard::Error::DeserializeBadEncoding);
        assert_eq!(decode_whole::<(u64, String)>(&behind), refused);
        let cut = decode_whole::<(u64, String)>(&bytes[..bytes.len() - 1]);
        assert_eq!(cut, Err(postcard::Error::DeserializeUnexpectedEnd));
    }
}
