package storetest

import (
	"sync"
	"syscall"
)

// roomInMemory reports whether there is room for the files of a package's tests. A container has 64 MB, unless it was given more.
var roomInMemory = sync.OnceValue(func() bool {
	const room = 2 << 30
	var s syscall.Statfs_t
	err := syscall.Statfs(shm, &s)
	return err == nil && uint64(s.Bsize)*s.Bavail >= room
})
