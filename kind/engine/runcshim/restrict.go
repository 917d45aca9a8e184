package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/sys/capability"
)

// specName returns the capability's name in the OCI runtime specification.
func specName(c capability.Cap) string {
	return "CAP_" + strings.ToUpper(c.String())
}

// restrict removes the missing capabilities from all five sets of the document's process, and
// raises a negative oomScoreAdj to 0 if CAP_SYS_RESOURCE is missing. It keeps everything else,
// including unknown fields. If nothing changes, it returns data unchanged and false. A bundle's
// config.json contains the process in a field; the file of exec --process is the process itself.
func restrict(data []byte, missing map[string]bool) (restricted []byte, changed bool, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // keeps 64-bit numbers exact
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil {
		return nil, false, fmt.Errorf("decoding: %w", err)
	}

	process, found := doc["process"].(map[string]any)
	if !found {
		process = doc
	}
	dropped := dropCapabilities(process, missing)
	raised := missing[specName(capability.CAP_SYS_RESOURCE)] && raiseOOMScore(process)
	if !dropped && !raised {
		return data, false, nil
	}

	restricted, err = json.Marshal(doc)
	return restricted, true, err
}

func dropCapabilities(process map[string]any, missing map[string]bool) (changed bool) {
	sets, _ := process["capabilities"].(map[string]any)
	for name, value := range sets {
		names, _ := value.([]any)
		kept := slices.DeleteFunc(slices.Clone(names), func(entry any) bool {
			text, ok := entry.(string)
			return ok && missing[text]
		})
		if len(kept) != len(names) {
			sets[name], changed = kept, true
		}
	}
	return changed
}

func raiseOOMScore(process map[string]any) (changed bool) {
	score, ok := process["oomScoreAdj"].(json.Number)
	if !ok || !strings.HasPrefix(score.String(), "-") {
		return false
	}
	process["oomScoreAdj"] = 0
	return true
}
