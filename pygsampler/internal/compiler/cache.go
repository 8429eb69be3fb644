package compiler

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// format is the version of the layout below and of the keys: a change of either increments it.
const format = 1

// head precedes an image in its file: the magic, the key, the digest of the image and its length.
type head struct {
	Magic  [8]byte
	Key    [sha256.Size]byte
	Digest [sha256.Size]byte
	Bytes  uint64
}

var magic = [8]byte{'p', 'g', 's', 'i', 'm', 'a', 'g', '0' + format}

// stale is the age of a temporary file whose writer is not alive any more.
const stale = time.Hour

// cache is a folder of images, each in a file of its own under its key. Any number of
// processes may use it at once: a file appears whole, by a rename, and says of itself
// what it holds. Everything in it may be removed at any time.
type cache struct{ folder string }

// key returns the digest of all inputs that determine an image, in their order. The length of each
// word precedes it, so that no two lists of words have the same digest.
func key(words ...string) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "pygsampler %d\n", format)
	for _, w := range words {
		fmt.Fprintf(h, "%d ", len(w))
		h.Write([]byte(w))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// path returns the path of the image. The name is for people, the key decides.
func (c cache) path(name string, k [sha256.Size]byte) string {
	safe := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
	return filepath.Join(c.folder, safe[:min(len(safe), 80)]+"."+hex.EncodeToString(k[:16]))
}

// load returns the image of a key, nil if there is none or a broken one.
func (c cache) load(name string, k [sha256.Size]byte) []byte {
	content, err := os.ReadFile(c.path(name, k))
	if err != nil {
		return nil
	}
	var h head
	image := content[min(len(content), binary.Size(h)):]
	if binary.Read(bytes.NewReader(content), binary.LittleEndian, &h) != nil ||
		h.Magic != magic || h.Key != k || h.Bytes != uint64(len(image)) || h.Digest != sha256.Sum256(image) {
		return nil
	}
	return image
}

// store keeps an image, instead of a broken one too. It is not synced: what a
// crash leaves of it is noticed when it is loaded.
func (c cache) store(name string, k [sha256.Size]byte, image []byte) (err error) {
	if !filepath.IsAbs(c.folder) {
		return fmt.Errorf("%q: expected an absolute path", c.folder)
	}
	// 0700, since an image is code that no other user may write.
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return err
	}
	c.sweep()
	file, err := os.CreateTemp(c.folder, "new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	var content bytes.Buffer
	h := head{magic, k, sha256.Sum256(image), uint64(len(image))}
	if err := binary.Write(&content, binary.LittleEndian, h); err != nil {
		return errors.Join(err, file.Close())
	}
	content.Write(image)
	_, err = file.Write(content.Bytes())
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), c.path(name, k))
}

// sweep removes what processes left that ended in the middle of a store.
func (c cache) sweep() {
	left, _ := filepath.Glob(filepath.Join(c.folder, "new-*"))
	for _, name := range left {
		if file, err := os.Lstat(name); err == nil && time.Since(file.ModTime()) > stale {
			_ = os.Remove(name) // another one sweeps too
		}
	}
}

// Folder returns the folder of the cache: PYGSAMPLER_CACHE, or the user's cache folder.
func Folder() (string, error) {
	if own := os.Getenv("PYGSAMPLER_CACHE"); own != "" {
		return own, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	if os.Getenv("XDG_CACHE_HOME") == "" {
		// A home that is not there, as Debian's /nonexistent, is not to be made.
		if _, err := os.Stat(filepath.Dir(base)); err != nil {
			return "", err
		}
	}
	return filepath.Join(base, "pygsampler"), nil
}
