//! Elements of a document.

/// An element.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
    /// Boxed, because hardly any element has one.
    pub(crate) type_attribute: Option<Box<str>>,
}

impl Element {
    /// The local name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text directly inside, as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value of the attribute `xsi:type`, by its local name. No other attribute is read.
    pub fn type_attribute(&self) -> Option<&str> {
        self.type_attribute.as_deref()
    }

    /// All children, in order.
    pub fn children(&self) -> &[Self] {
        &self.children
    }

    /// The children of this name, in order.
    pub fn children_named<'e>(&'e self, name: &'static str) -> impl Iterator<Item = &'e Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the only child of this name, if there is one.
    ///
    /// # Errors
    /// If there are several.
    pub fn only_child(&self, name: &'static str) -> Result<Option<&Self>, InvalidXml> {
        let mut found = self.children_named(name);
        let first = found.next();
        if found.next().is_some() { Err(InvalidXml) } else { Ok(first) }
    }

    /// Returns the trimmed text of the only child of this name, if there is one.
    ///
    /// # Errors
    /// If there are several.
    pub fn only_text(&self, name: &'static str) -> Result<Option<&str>, InvalidXml> {
        Ok(self.only_child(name)?.map(|child| child.text.trim()))
    }

    /// Returns the first child that has none of these names.
    pub fn child_beyond(&self, names: &[&str]) -> Option<&Self> {
        self.children.iter().find(|child| !names.contains(&child.name.as_str()))
    }

    /// Returns the first child of this name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the text of the first child of this name.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(Self::text)
    }

    /// Appends all elements of this name, at any depth, in the order of the document. Not those within one of them.
    pub fn collect(self, name: &str, found: &mut Vec<Self>) {
        if self.name == name {
            found.push(self);
        } else {
            self.children.into_iter().for_each(|child| child.collect(name, found));
        }
    }
}

/// The document is not well-formed, not allowed, or lacks what the operation needs.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidXml;

impl<E: std::error::Error> From<E> for InvalidXml {
    fn from(_: E) -> Self {
        Self
    }
}
