package graphfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A temporary file lies in the target's folder and is called ".", the target's name,
// ".", ten letters, ".tmp". Whoever writes it holds a lock on it. One without a lock
// is of a process that was killed, and goes when the target is written next.

// abandonedAfter is the age from which a file without a lock has no writer: not one
// that is about to take it.
const abandonedAfter = time.Minute

const temporaryEnd = ".tmp"

func temporaryStart(name string) string {
	// The name may be as long as names can be.
	return "." + name[:min(len(name), 200)] + "."
}

func createTemporary(target string) (*os.File, error) {
	folder, name := filepath.Split(target)
	removeAbandoned(folder, name)
	for {
		path := folder + temporaryStart(name) + rand.Text()[:10] + temporaryEnd
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("creating a temporary file in its folder: %w", err)
		}
		// If files cannot be locked, the files of killed processes stay.
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		return file, nil
	}
}

// removeAbandoned does what it can.
func removeAbandoned(folder, name string) {
	if folder == "" {
		folder = "."
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	start := temporaryStart(name)
	for _, e := range entries {
		if len(e.Name()) == len(start)+10+len(temporaryEnd) && strings.HasPrefix(e.Name(), start) && strings.HasSuffix(e.Name(), temporaryEnd) {
			removeUnlocked(filepath.Join(folder, e.Name()))
		}
	}
}

func removeUnlocked(path string) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil || !about.Mode().IsRegular() || time.Since(about.ModTime()) < abandonedAfter {
		return
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = os.Remove(path)
	}
}
