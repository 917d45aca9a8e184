package logline

import (
	"regexp"
	"strings"
	"time"
)

// Level says how bad a line is.
type Level string

// The levels. A line that does not say is Info.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// Line is one line of a log.
type Line struct {
	// Time is when it was written; zero if the line does not tell.
	Time time.Time
	// Program is who wrote it, of a line of the journal.
	Program string
	Level   Level
	Message string
	// Fields are what it says beside the message, by key.
	Fields map[string]string
}

// journalTime is journalctl's --output=short-iso-precise.
const journalTime = "2006-01-02T15:04:05.999999-0700"

// programName is that of a process, with its number behind it or without.
var programName = regexp.MustCompile(`^([^\s\[\]:]+)(\[\d+\])?:$`)

// Journal reads a line as `journalctl --output=short-iso-precise` prints it: time, host, program, text. It is false for
// anything else, for example the line that says that there are no entries.
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

// Container reads a line of a container's log with the timestamp of the kubelet or of Docker before it. It is false for a line
// without one.
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

// Text is the message, and behind it the fields with these names that the line has, in this order; "error" is an alias for
// "err". Without names it is only the message.
func (l Line) Text(fields ...string) string {
	parts := []string{}
	if l.Message != "" {
		parts = append(parts, l.Message)
	}
	for _, name := range fields {
		value := l.Fields[name]
		if name == "error" && value == "" {
			value = l.Fields["err"]
		}
		if value == "" {
			continue
		}
		if name == "error" {
			parts = append(parts, value)
		} else {
			parts = append(parts, name+"="+value)
		}
	}
	return strings.Join(parts, ": ")
}
