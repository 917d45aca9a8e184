package cache

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// decode stores what the file has in another form (Content-Encoding). Clients have seen nothing of
// it.
func (d *download) decode() error {
	defer func() { _ = d.cache.options.Store.DropPartial(d.blob) }()
	decoded, err := decoder(d.encoding, io.NewSectionReader(d.file, 0, d.have))
	if err != nil {
		return err
	}
	into, err := d.cache.options.Store.Temporary()
	if err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	defer func() { _ = into.Close() }()
	verifier, size := d.blob.Verifier(), int64(0)
	for part := int64(1); part > 0; size += part {
		if size+step > d.room.size && !d.room.step() {
			return fmt.Errorf("%w: it has no room", errDisk)
		}
		if part, err = io.CopyN(io.MultiWriter(into, verifier), decoded, step); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("decoding blob %s: %w", d.blob, err)
		}
	}
	if !verifier.Verified() {
		return fmt.Errorf("blob %s: %w", d.blob, errDamaged)
	}
	if err := into.Commit(d.blob); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	d.cache.stored(d.link, d.blob, size)
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", into.Fd()))
	if err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	_ = d.file.Close()
	d.update(func() { d.file, d.size, d.have, d.hidden, d.checked = file, size, size, false, true })
	return nil
}

// decoder knows the codings for which containerd asks.
func decoder(encoding string, from io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "gzip", "x-gzip":
		return gzip.NewReader(bufio.NewReader(from))
	case "deflate":
		return flate.NewReader(from), nil
	case "zstd":
		decoded, err := zstd.NewReader(from, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("decoding zstd: %w", err)
		}
		return decoded.IOReadCloser(), nil
	case "identity":
		return nil, errDamaged // the digest is another one
	default:
		return nil, fmt.Errorf("the upstream's Content-Encoding %q is unknown", encoding)
	}
}
