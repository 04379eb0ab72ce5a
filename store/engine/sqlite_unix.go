//go:build unix

package engine

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// mayFill reports whether this process can make files in a folder.
func mayFill(folder string) bool {
	const writeAndSearch = 3
	info, err := os.Stat(folder)
	return err == nil && info.IsDir() && syscall.Access(folder, writeAndSearch) == nil
}

// mayWrite reports whether this process can write a file that is there.
func mayWrite(file string) bool {
	const write = 2
	err := syscall.Access(file, write)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// hardLinks returns how many names a file has.
func hardLinks(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	own, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(own.Nlink) //nolint:unconvert // it has another type on other systems
}
