//go:build !unix

package host

import "io/fs"

// On other systems, access lists say who may write. They are not read, so nothing is refused because of them, and
// nothing is allowed.

func writableByOthers(fs.FileInfo) string { return "" }

func replaceable(string) string { return "" }

func readableByOthers(fs.FileInfo) bool { return false }

// OnlyOurs reports whether only this user can write the file. It always returns false, because that is not known
// here.
func OnlyOurs(string) bool { return false }
