// The name of a bucket.

import { h } from "./dom.js";

/** Makes the field for the name of a new bucket. */
export function bucketNameInput() {
  return h("input", {
    name: "bucket",
    type: "text",
    required: true,
    minlength: 3,
    maxlength: 63,
    autocomplete: "off",
    spellcheck: "false",
  });
}
