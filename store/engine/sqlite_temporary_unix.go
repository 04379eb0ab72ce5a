//go:build unix

package engine

import (
	"os"
	"syscall"
)

// mayFill reports whether this process can make files in a folder.
func mayFill(folder string) bool {
	const writeAndSearch = 3
	info, err := os.Stat(folder)
	return err == nil && info.IsDir() && syscall.Access(folder, writeAndSearch) == nil
}
