package logline

import "regexp"

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
