// Package store holds what the database holds, and is the only package that speaks dbjobs' own SQL.
//
// There is one Store over database/sql. What differs between engines is text: the schema and the statements in
// sql/<dialect>, and a dialect of a few lines that opens a connection, encodes an instant and classifies an error.
//
// Definitions are written by people (Apply, Pause, plain SQL), plans and the ledger by the program alone; see
// sql/postgres/schema for each table and column.
package store
