//! Collects the schemas of types for an OpenAPI document.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

const COMPONENTS: &str = "/components/schemas";

/// Adds the schema of one type, and returns a reference to it.
pub type TypeSchema = fn(&mut SchemaGenerator) -> Schema;

/// The schemas of the types that were asked for, and of those that they contain.
pub struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = COMPONENTS.into();
                settings.meta_schema = None;
            })
        };
        Self {
            requests: settings().for_deserialize().into_generator(),
            responses: settings().for_serialize().into_generator(),
        }
    }
}

impl Schemas {
    /// Returns a reference to the schema of a request or a parameter. Members with a default are optional.
    pub fn request(&mut self, schema: TypeSchema) -> Value {
        schema(&mut self.requests).to_value()
    }

    /// Returns a reference to the schema of a response. Members that are always sent are required.
    pub fn response(&mut self, schema: TypeSchema) -> Value {
        schema(&mut self.responses).to_value()
    }

    /// Returns the schemas by name. Where both directions have one, that of requests requires less and is taken.
    #[must_use]
    pub fn components(mut self) -> Map<String, Value> {
        let mut components = self.responses.take_definitions(true);
        components.values_mut().for_each(close);
        components.extend(self.requests.take_definitions(true));
        components.values_mut().for_each(unwrap_lines);
        components
    }
}

/// Returns the function that adds the schema of a type.
#[must_use]
pub const fn schema_of<T: JsonSchema>() -> TypeSchema {
    SchemaGenerator::subschema_for::<T>
}

/// Marks a member that may be absent and may be null. The document does not have it.
const NULLABLE: &str = "x-nullable";

/// Says in the schema of a response that there are no other members, and that members are not null if they may be absent.
fn close(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    let required = schema.get("required").cloned().unwrap_or_default();
    let Some(Value::Object(members)) = schema.get_mut("properties") else { return };
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    members.iter_mut().filter(|(name, _)| !is_required(name)).for_each(|(_, member)| not_null(member));
    schema.entry("additionalProperties").or_insert(Value::Bool(false));
}

/// Removes null from the values that a schema allows, unless it is marked.
fn not_null(schema: &mut Value) {
    if schema.as_object_mut().is_some_and(|schema| schema.remove(NULLABLE).is_some()) {
        return;
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            schema["type"] = only.clone();
        }
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    if let ([Value::Object(only)], Value::Object(schema)) = (&choices.clone()[..], schema) {
        schema.remove("anyOf");
        schema.extend(only.clone());
    }
}

/// Makes plain text of descriptions, which are doc comments.
fn unwrap_lines(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace('\n', " ").replace('`', "");
            }
            members.values_mut().for_each(unwrap_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_lines),
        _ => {}
    }
}
