package nodeexec

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// maxCommand limits the length of an encoded command to less than half of the largest SSH packet.
const maxCommand = 100 << 10

// encode returns the arguments separated by NUL, like /proc/PID/cmdline. The error is why the
// arguments cannot be sent, for example because one contains NUL.
func encode(argv []string) (string, error) {
	encoded := strings.Join(argv, "\x00")
	switch {
	case len(argv) == 0 || argv[0] == "":
		return "", errors.New("no program")
	case strings.Count(encoded, "\x00") != len(argv)-1:
		return "", errors.New("an argument has a NUL byte")
	case len(encoded) > maxCommand:
		return "", fmt.Errorf("a command of %d bytes is longer than %d", len(encoded), maxCommand)
	}
	return encoded, nil
}

// decode is the inverse of encode.
func decode(encoded string) []string { return strings.Split(encoded, "\x00") }

// stream makes a net.Conn, which package ssh needs, from two pipes.
type stream struct {
	io.ReadCloser
	io.WriteCloser
}

func (s stream) Close() error                   { return errors.Join(s.WriteCloser.Close(), s.ReadCloser.Close()) }
func (stream) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
func (stream) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
func (stream) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (stream) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (stream) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
