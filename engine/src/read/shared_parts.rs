//! Parts of multipart objects that several readers of an executor share.

use crate::format::payload_id::PayloadId;
use crate::read::reader::OpenPart;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The opened parts of objects of which readers need many, by the id that pins the object.
#[derive(Default)]
pub(crate) struct SharedParts(RefCell<HashMap<PayloadId, Weak<Vec<OpenPart>>>>);

impl SharedParts {
    /// The parts of an object that another reader has open.
    pub(crate) fn get(&self, id: PayloadId) -> Option<Rc<Vec<OpenPart>>> {
        self.0.borrow().get(&id).and_then(Weak::upgrade)
    }

    /// Offers parts to later readers, for as long as one reader holds them.
    pub(crate) fn share(&self, id: PayloadId, parts: &Rc<Vec<OpenPart>>) {
        let mut shared = self.0.borrow_mut();
        // Removing unused entries at each insertion bounds the map by the number of readers.
        shared.retain(|_, parts| parts.strong_count() > 0);
        shared.insert(id, Rc::downgrade(parts));
    }
}
