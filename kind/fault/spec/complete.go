package spec

// Kinds are those that a part of the role can have, in the order of the catalog; none for an unknown role.
func Kinds(role Role) []Kind {
	var all []Kind
	for _, s := range shapes {
		if s.role == role {
			all = append(all, s.kind)
		}
	}
	return all
}
