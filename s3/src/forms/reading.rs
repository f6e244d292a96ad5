//! Reads a form from the connection, up to its file.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::forms::boundary::{Delimiter, malformed};
use crate::forms::fields::FormFields;
use crate::forms::file::{FileSource, SizeBounds};
use crate::forms::parts::{PartReader, Progress, not_one_file};
use crate::forms::policy::FileSizes;
use crate::limits::REQUEST_PAYLOAD_BYTES_MAX;
use cairn_http1::BodyFraming;
use cairn_model::u64_of;
use cairn_net::RequestBody;

/// Bytes to read at a time before the file. Most forms have their fields in one read.
const READ_BYTES: usize = 4096;

/// A form whose fields have been read, and whose file comes next.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) fields: FormFields,
    delimiter: Delimiter,
    /// The bytes of the file that came with the fields.
    begun: Vec<u8>,
    /// The bounds of the file's size.
    pub(crate) bounds: SizeBounds,
    /// The sizes that the policy and the largest object allow. The policy is checked after the form is read.
    pub(crate) allowed: FileSizes,
}

impl Form {
    /// Reads the fields of a form with this content type.
    ///
    /// # Errors
    /// `MissingContentLength`, and `NotImplemented` for the chunked transfer coding; those of
    /// [`PartReader::push`] and [`FormFields::new`]; `IncorrectNumberOfFilesInPostRequest`; errors of the connection.
    pub(crate) async fn read(
        content_type: &[u8],
        framing: BodyFraming,
        body: &mut RequestBody<'_>,
    ) -> S3Result<Self> {
        let delimiter = Delimiter::of_content_type(content_type)?;
        if !matches!(framing, BodyFraming::Length(_)) {
            return Err(ErrorCode::MissingContentLength.into());
        }
        let mut reader = PartReader::new(delimiter.clone());
        let mut bytes = [0; READ_BYTES];
        let filename = loop {
            let count = body.read(&mut bytes).await?;
            if count == 0 {
                return Err(malformed("it ends before its file"));
            }
            match reader.push(&bytes[..count])? {
                Progress::Incomplete => {}
                Progress::File { name } => break name,
                Progress::Ended => return Err(not_one_file()),
            }
        };
        let (fields, begun) = reader.into_rest();
        let bounds = SizeBounds::new(u64_of(begun.len()) + body.remaining(), &delimiter)?;
        let fields = FormFields::new(fields, &filename)?;
        let allowed = FileSizes { min: 0, max: REQUEST_PAYLOAD_BYTES_MAX };
        Ok(Self { fields, delimiter, begun, bounds, allowed })
    }

    /// Allows only files of these sizes.
    ///
    /// # Errors
    /// Those of [`SizeBounds::check`].
    pub(crate) fn restrict(&mut self, sizes: FileSizes) -> S3Result<()> {
        self.allowed = FileSizes { min: sizes.min, max: sizes.max.min(self.allowed.max) };
        self.bounds.check(self.allowed)
    }

    /// The most bytes that the file may have.
    pub(crate) fn size_max(&self) -> u64 {
        self.bounds.most.min(self.allowed.max)
    }

    /// Returns the source of the file. `body` is the one that the form was read from.
    pub(crate) fn source<'b, 'c>(&self, body: &'b mut RequestBody<'c>) -> FileSource<'b, 'c> {
        FileSource::new(body, self.delimiter.clone(), &self.begun, self.bounds, self.allowed)
    }
}

/// Returns the error for a POST to a bucket that is not a form.
pub(crate) fn not_a_form() -> S3Error {
    S3Error::new(ErrorCode::PreconditionFailed)
        .element("Condition", "Bucket POST must be of the enclosure-type multipart/form-data")
}
