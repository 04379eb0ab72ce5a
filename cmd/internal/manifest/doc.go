// Package manifest reads and writes jobs.yaml, the file that "dbjobs apply" brings into a database and that
// "dbjobs export" writes.
//
// A manifest is read by its nodes rather than into structs, for two promises. Every problem of a file is reported at
// once, each with its line, its column, the path of the field, what was found and what is allowed. And nothing is
// guessed: an unknown or repeated key, a number where a text belongs, a second document or an empty file is refused,
// because a schedule that silently is not what its author wrote shows weeks later, as a run that did not happen.
//
// Anchors, aliases and merge keys work as YAML has them; keys of the top level that begin with x- are left alone, so
// that there is a place for anchors. What aliases may expand to is bounded.
package manifest
