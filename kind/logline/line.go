package logline

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
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
	Time    time.Time // zero if the line has no time
	Program string    // the program that wrote a journal line
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
// Docker. It returns false for a line without a timestamp.
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

// Text returns the message, then those of the given fields that the line has, in the given order;
// "error" also matches "err". Without fields it returns only the message.
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

// PullMessage parses a message of containerd about a pull. It returns the requested reference.
func PullMessage(message string) (image string, state PullState, ok bool) {
	match := pullMessage.FindStringSubmatch(message)
	if match == nil {
		return "", "", false
	}
	return match[1], PullState(match[2]), true
}

// ContainerdStarts reports whether message is the first one after a start of containerd. Pulls that
// ran when the previous containerd ended have no further message.
func ContainerdStarts(message string) bool { return message == "starting containerd" }

var (
	// klogHead is klog's header: level, month and day, time, process, source.
	klogHead = regexp.MustCompile(`^([IWEF])\d{4} \d{2}:\d{2}:\d{2}\.\d+ +\d+ [^ \]]+\] `)
	// consoleHead is the header of zap's console encoder: time, level.
	consoleHead = regexp.MustCompile(`^\S+T\S+Z?\t([A-Z]+)\t`)
	logfmtKey   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*=`)
)

// Payload parses the output of a program. Text in an unknown format becomes the message.
func Payload(text string) Line {
	text = strings.TrimSpace(text)
	for _, read := range []func(string) (Line, bool){readJSON, readKlog, readConsole, readLogfmt} {
		if line, ok := read(text); ok {
			return line
		}
	}
	return Line{Level: Info, Message: text}
}

func levelOf(name string) Level {
	switch strings.ToLower(name) {
	case "e", "f", "error", "fatal", "panic", "dpanic", "err":
		return Error
	case "w", "warn", "warning":
		return Warning
	default:
		return Info
	}
}

func readJSON(text string) (Line, bool) {
	return fromFields(jsonFields(text), "ts")
}

// jsonFields returns the fields of a JSON object, or nil for other text.
func jsonFields(text string) map[string]string {
	var all map[string]json.RawMessage
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	fields := map[string]string{}
	for key, raw := range all {
		fields[key] = unquoteJSON(raw)
	}
	return fields
}

// unquoteJSON returns a JSON string without quotes, and any other value unchanged.
func unquoteJSON(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func readKlog(text string) (Line, bool) {
	head := klogHead.FindStringSubmatch(text)
	if head == nil {
		return Line{}, false
	}
	line := Line{Level: levelOf(head[1]), Message: text[len(head[0]):]}
	if quoted, err := strconv.QuotedPrefix(line.Message); err == nil {
		if fields, ok := parseLogfmt(line.Message[len(quoted):]); ok {
			line.Fields = fields
			line.Message, _ = strconv.Unquote(quoted) // QuotedPrefix has validated it
		}
	}
	return line, true
}

func readConsole(text string) (Line, bool) {
	head := consoleHead.FindStringSubmatch(text)
	if head == nil {
		return Line{}, false
	}
	message, fields, _ := strings.Cut(text[len(head[0]):], "\t{")
	line := Line{Level: levelOf(head[1]), Message: message}
	line.Fields = jsonFields("{" + fields) // fields are optional
	return line, true
}

func readLogfmt(text string) (Line, bool) {
	fields, _ := parseLogfmt(text)
	return fromFields(fields, "time")
}

// fromFields moves the message, the level and the time out of fields into a line. The argument at
// is the key of the time. If there is no message, fromFields returns false.
func fromFields(fields map[string]string, at string) (Line, bool) {
	message, ok := fields["msg"]
	line := Line{Time: parseTime(fields[at]), Level: levelOf(fields["level"]), Message: message, Fields: fields}
	for _, key := range []string{"msg", "level", at} {
		delete(fields, key)
	}
	return line, ok
}

// parseTime accepts RFC 3339 and zap's seconds since 1970. It returns zero for anything else.
func parseTime(text string) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.UTC()
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds <= 0 || seconds > math.MaxUint32 {
		return time.Time{}
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)).UTC()
}

// parseLogfmt parses key=value pairs whose values may be quoted as in Go. It returns false for
// other text.
func parseLogfmt(text string) (map[string]string, bool) {
	fields := map[string]string{}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key := logfmtKey.FindString(text)
		if key == "" {
			return nil, false
		}
		value, rest, _ := strings.Cut(text[len(key):], " ")
		if strings.HasPrefix(value, `"`) {
			quoted, err := strconv.QuotedPrefix(text[len(key):])
			if err != nil {
				return nil, false
			}
			value, _ = strconv.Unquote(quoted) // QuotedPrefix has validated it
			rest = text[len(key)+len(quoted):]
		}
		fields[strings.TrimSuffix(key, "=")], text = value, rest
	}
	return fields, true
}
