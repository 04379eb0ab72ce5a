//go:build !unix

package host

import "io/fs"

// Other systems tell by access lists who may write, which are not read: nothing is refused for it, and nothing is given.

func writableByOthers(fs.FileInfo) string { return "" }

func replaceable(string) string { return "" }

func readableByOthers(fs.FileInfo) bool { return false }

// OnlyOurs reports whether nobody but this user can write the file: never, where that is not known.
func OnlyOurs(string) bool { return false }
