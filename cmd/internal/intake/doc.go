// Package intake turns the jobs of another scheduler into a manifest. Each source has a package below it. This
// package has what they share: a list of items, the reader of a cron line, and models of what schedulers do when
// clocks change.
//
// The package makes three promises. Every line or object of the source is accounted for: it is a job, or the
// result names it with the reason why it is none. A change of meaning is stated beside the job. And "apply
// --dry-run" accepts the manifest: each job is read back before it counts as imported.
package intake
