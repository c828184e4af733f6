//! Where there are no views.

use std::io;
use std::ptr::NonNull;

use super::View;
use crate::shared_file::SharedFile;
use crate::space::Slot;

/// The views of a node's store, of which there are none on this system.
#[derive(Clone, Copy, Debug)]
pub enum Views {}

impl Views {
    /// # Safety
    /// None.
    pub unsafe fn map(_: &Slot) -> io::Result<Views> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "only Linux on x86-64 has them",
        ))
    }

    /// # Safety
    /// None.
    pub(crate) unsafe fn show(&self, _: &SharedFile) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn begins(&self) -> u64 {
        match *self {}
    }

    pub fn store(&self) -> NonNull<u8> {
        match *self {}
    }

    pub fn store_bytes(&self) -> u64 {
        match *self {}
    }

    pub fn of(&self, _: NonNull<u8>, _: View) -> NonNull<u8> {
        match *self {}
    }

    /// # Safety
    /// None.
    pub unsafe fn release(&self, _: NonNull<u8>, _: u64) {
        match *self {}
    }

    /// # Safety
    /// None.
    pub unsafe fn unmap(&self) {
        match *self {}
    }
}

/// No handle leads to a view.
pub fn view_of(_: *mut u8) -> View {
    View::Nothing
}
