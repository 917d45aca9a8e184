package image

// images are the built images by name.
type Set map[string]Built

// pick returns the named images.
func (all Set) Pick(names ...string) []Built {
	picked := make([]Built, 0, len(names))
	for _, name := range names {
		picked = append(picked, all[name])
	}
	return picked
}
