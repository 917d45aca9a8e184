package logline

import (
	"cmp"
	"regexp"
	"strings"
	"time"
)

// Level is the severity of a line.
type Level string

// Levels. A line without a level is Info.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// Line is one line of a log.
type Line struct {
	Time    time.Time // zero if the line has none
	Program string    // the writer of a journal line
	Level   Level
	Message string
	Fields  map[string]string // the key-value pairs of the line, without message, level and time
}

// journalTime is the format of journalctl --output=short-iso-precise.
const journalTime = "2006-01-02T15:04:05.999999-0700"

// programName matches a program name with or without a process ID.
var programName = regexp.MustCompile(`^([^\s\[\]:]+)(\[\d+\])?:$`)

// Journal parses a line of `journalctl --output=short-iso-precise`: time, host, program, text. It
// returns false for any other line, for example "-- No entries --".
func Journal(text string) (Line, bool) {
	words := strings.SplitN(strings.TrimRight(text, "\r\n"), " ", 4)
	if len(words) < 3 {
		return Line{}, false
	}
	at, err := time.Parse(journalTime, words[0])
	program := programName.FindStringSubmatch(words[2])
	if err != nil || program == nil {
		return Line{}, false
	}
	line := Line{}
	if len(words) == 4 {
		line = Payload(words[3])
	}
	line.Time, line.Program = at.UTC(), program[1]
	return line, true
}

// Container parses a line of a container's log that starts with the timestamp of the kubelet or
// Docker. It returns false for a line without one.
func Container(text string) (Line, bool) {
	stamp, payload, _ := strings.Cut(strings.TrimRight(text, "\r\n"), " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return Line{}, false
	}
	line := Payload(payload)
	line.Time = at.UTC()
	return line, true
}

// Text returns the message and those of the given fields that the line has, in this order; "error"
// also matches "err". Without fields it returns only the message.
func (l Line) Text(fields ...string) string {
	parts := []string{}
	if l.Message != "" {
		parts = append(parts, l.Message)
	}
	for _, name := range fields {
		value, prefix := l.Fields[name], name+"="
		if name == "error" {
			value, prefix = cmp.Or(value, l.Fields["err"]), ""
		}
		if value != "" {
			parts = append(parts, prefix+value)
		}
	}
	return strings.Join(parts, ": ")
}

// PullState is the state of a pull in containerd's log.
type PullState string

// Pull states.
const (
	PullBegan    PullState = ""
	PullReturned PullState = " returns"
	PullFailed   PullState = " failed"
)

var pullMessage = regexp.MustCompile(`^PullImage "([^"]+)"( returns| failed)?`)

// PullMessage parses a message of containerd about a pull. image is the reference as requested.
func PullMessage(message string) (image string, state PullState, ok bool) {
	match := pullMessage.FindStringSubmatch(message)
	if match == nil {
		return "", "", false
	}
	return match[1], PullState(match[2]), true
}

// ContainerdStarts reports whether message is the first one of a starting containerd. It knows no
// pulls, so all earlier ones have ended without a message.
func ContainerdStarts(message string) bool { return message == "starting containerd" }
