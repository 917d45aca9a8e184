package cluster

// Named returns the node of the cluster with the name, or nil.
func Named(c *Cluster, name string) *Node {
	for _, node := range c.Nodes() {
		if node.Name() == name {
			return node
		}
	}
	return nil
}

// Names returns the names of the nodes.
func Names(nodes []*Node) []string {
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name())
	}
	return names
}
