package engine

import (
	"errors"

	"golang.org/x/sys/windows"
)

// lockFile holds a file open, alone, until the process ends or release is called. The system deletes the file when it is closed,
// as it is when the process ends, in any way.
func lockFile(path, _ string) (release func(), err error) {
	h, err := passingFile(path, 0, windows.OPEN_ALWAYS)
	if err != nil {
		return nil, err
	}
	return func() { windows.CloseHandle(h) }, nil
}

// locked reports whether a process holds a file open alone. A file without a holder, as after a loss of power, is deleted.
func locked(path string) bool {
	h, err := passingFile(path, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, windows.OPEN_EXISTING)
	if err == nil {
		windows.CloseHandle(h)
	}
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION)
}

// passingFile opens a file that is deleted when it is closed. share says what other processes may do with it meanwhile.
func passingFile(path string, share, how uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	return windows.CreateFile(name, windows.GENERIC_READ|windows.DELETE, share, nil, how, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
}
