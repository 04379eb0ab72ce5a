// Package manifest reads and writes jobs.yaml, the file that "dbjobs apply" writes into a database and
// that "dbjobs export" prints.
//
// It reads the nodes of the YAML text instead of unmarshalling into structs, for two promises. First,
// all problems of a file are reported at once, each with its line, its column, the path of the field,
// what was found and what is allowed. Second, nothing is guessed: an unknown or repeated key, a number
// where a text belongs, a second document, or an empty file is an error. If a schedule silently
// differed from what its author wrote, somebody would notice weeks later that a run is missing.
//
// A manifest may have several files (Read). Variables of the environment are put into the values of a file
// before the values are read, so that each value is checked in its final form.
//
// Anchors, aliases and merge keys work as in any YAML file. Keys at the top level that begin with x- are
// ignored, so that there is a place for anchors. The size to which aliases may expand is limited.
package manifest
