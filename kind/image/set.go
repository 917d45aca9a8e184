package image

// Set is a set of built images, by name.
type Set map[string]Built

// Pick returns the images with the names. The set must contain them.
func (all Set) Pick(names ...string) []Built {
	picked := make([]Built, 0, len(names))
	for _, name := range names {
		picked = append(picked, all[name])
	}
	return picked
}
