package fieldbugs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// script records the commands of a bug as bash that works on any testbed. Values that differ
// between runs, such as images, volumes and nodes, become variables.
type script struct {
	lines []*line
	names []binding
	// loop is the index of the first line of the current loop, or 0 outside of loops. Each line of
	// a loop is recorded once.
	loop int
}

// line is a command or a note.
type line struct {
	text string
	// variable is the name of the variable for the output, if a later line needs it.
	variable string
	// image is the number of the pushed image, or 0.
	image int
	// digest and parts are true if later lines need the digest of the image or those of its parts.
	digest, parts bool
}

// binding replaces a value of this run by a text in later lines. The function use, if not nil, is
// called when a line contains the value.
type binding struct {
	value, text string
	use         func()
}

func (s *script) commands() (all []string) {
	for _, l := range s.lines {
		all = append(all, l.commands()...)
	}
	return all
}

func (l *line) commands() []string {
	switch {
	case l.digest || l.parts:
		return l.pushWithDigests()
	case l.variable != "":
		return []string{l.variable + "=$(" + l.text + ")"}
	}
	return []string{l.text}
}

// pushWithDigests returns commands that push with --json and read the digests with jq.
func (l *line) pushWithDigests() []string {
	output := numbered("pushed", l.image)
	from := ` <<<"$` + output + `")`
	all := []string{output + "=$(" + l.text + " --json)", l.variable + "=$(jq -r .reference" + from}
	if l.digest {
		all = append(all, numbered("digest", l.image)+"=$(jq -r .digest"+from)
	}
	if l.parts {
		all = append(all, numbered("parts", l.image)+`=($(jq -r '.objects[].digest | ltrimstr("sha256:")'`+from+")")
	}
	return all
}

// add appends a line, unless it equals the last line or a line in the current loop.
func (s *script) add(added *line) {
	from := max(len(s.lines)-1, 0)
	if s.loop > 0 {
		from = s.loop
	}
	same := func(l *line) bool { return l.text == added.text && l.variable == added.variable }
	if slices.ContainsFunc(s.lines[from:], same) {
		return
	}
	s.lines = append(s.lines, added)
}

func (s *script) note(text string) { s.add(&line{text: "# " + s.substitute(text)}) }

func (s *script) run(args []string) { s.add(&line{text: s.commandLine(args)}) }

// push appends a push command. Later lines use the image as $image, $image2 and so on.
func (s *script) push(args []string) *line {
	images := 1
	for _, l := range s.lines {
		images = max(images, l.image+1)
	}
	pushed := &line{text: s.commandLine(args), image: images, variable: numbered("image", images)}
	s.lines = append(s.lines, pushed)
	return pushed
}

// bindImage binds the reference and the digests of the image that the line has pushed.
func (s *script) bindImage(by *line, img pull.Pushed) {
	if img.Reference == "" {
		return
	}
	repository := img.Reference[:max(strings.LastIndex(img.Reference, ":"), 0)]
	s.bind(img.Reference, "${"+by.variable+"}", nil)
	s.bind(repository, "${"+by.variable+"%:*}", nil)
	if _, path, ok := strings.Cut(img.Reference, "/"); ok {
		s.bind(path, "${"+by.variable+"#*/}", nil)
	}
	s.bind(img.Digest, "${"+numbered("digest", by.image)+"}", func() { by.digest = true })
	for i, object := range img.Objects {
		part := fmt.Sprintf("${%s[%d]", numbered("parts", by.image), i)
		hex := strings.TrimPrefix(object.Digest, "sha256:")
		if len(hex) > 2 {
			s.bind(hex[:2]+"/"+hex, part+":0:2}/"+part+"}", func() { by.parts = true })
		}
		s.bind(hex, part+"}", func() { by.parts = true })
	}
}

// ask appends a command whose output later lines use as $name, $name2 and so on.
func (s *script) ask(name string, args []string) (variable string) {
	text := s.commandLine(args)
	count := 1
	for _, l := range s.lines {
		if l.image > 0 || strings.TrimRight(l.variable, "0123456789") != name {
			continue
		}
		if l.text == text {
			return l.variable
		}
		count++
	}
	variable = numbered(name, count)
	s.lines = append(s.lines, &line{text: text, variable: variable})
	return variable
}

// numbered returns the name of the nth variable. The first has no number.
func numbered(name string, number int) string {
	if number < 2 {
		return name
	}
	return fmt.Sprintf("%s%d", name, number)
}

// bind replaces a value by a text in all later lines, unless the value is already bound.
func (s *script) bind(value, text string, use func()) {
	if value == "" || slices.ContainsFunc(s.names, func(b binding) bool { return b.value == value }) {
		return
	}
	s.names = append(s.names, binding{value, text, use})
	// Longer values first, because they can contain shorter ones.
	slices.SortStableFunc(s.names, func(a, b binding) int { return len(b.value) - len(a.value) })
}

// substitute returns the text with all bound values replaced. The result belongs in double quotes.
func (s *script) substitute(text string) string {
	for _, b := range s.names {
		before, after, found := strings.Cut(text, b.value)
		if !found {
			continue
		}
		if b.use != nil {
			b.use()
		}
		return s.substitute(before) + b.text + s.substitute(after)
	}
	return text
}

// programFlags lists flags for output to programs. Recorded commands omit these flags.
var programFlags = []string{"--json", "--output=json"}

// commandLine returns a testbed command as a line of the bash script: without programFlags, and
// with variables for the values of this run.
func (s *script) commandLine(args []string) string {
	words := []string{"testbed"}
	for _, arg := range args {
		if !slices.Contains(programFlags, arg) {
			words = append(words, s.word(arg))
		}
	}
	return strings.Join(words, " ")
}

var shellEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// word returns the argument for a shell, with bound values replaced.
func (s *script) word(arg string) string {
	escaped := shellEscaper.Replace(arg)
	if named := s.substitute(escaped); named != escaped {
		return `"` + simpleVariable.ReplaceAllString(named, "$$$1") + `"`
	}
	return quoted(arg)
}

// simpleVariable matches a variable that needs no braces.
var simpleVariable = regexp.MustCompile(`^\$\{(\w+)\}$`)

// startLoop starts a loop that runs until a condition is true. The function end ends the loop.
func (s *script) startLoop(until string) (end func()) {
	outer := s.loop
	s.note("until " + until + ":")
	s.loop = len(s.lines)
	return func() { s.loop = outer }
}

// mark returns a function that drops all lines and bindings added after mark, for failed attempts.
func (s *script) mark() (reset func()) {
	lines, names := len(s.lines), slices.Clone(s.names)
	return func() { s.lines, s.names = s.lines[:lines], names }
}
