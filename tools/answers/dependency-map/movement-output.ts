import { Type } from '@sinclair/typebox'
import { Count, Counts, Flag, Total } from '../../../schemas/common.js'
import { HIGH_RISK_PORTS } from '../../../domain/dependency-map/collect-edge-ports.js'

const Reachable = Count('Other applications it reaches over any number of hops')

const Edges = (description: string) =>
  Type.Array(
    Type.Object({
      from: Type.String(),
      to: Type.String(),
      connections: Type.Integer(),
      ports: Type.Array(Type.String(), { description: 'Busiest 10, blocked flows left out' }),
      ports_total: Total,
      high_risk_ports: Type.Array(Type.Integer(), { description: `In use, of ${HIGH_RISK_PORTS.join(', ')}` }),
      policy_decisions: Counts('Connections by decision'),
    }),
    { description },
  )

/** The lists of an answer about lateral movement, and what belongs to them. Nodes are written `app|env`. */
export const MovementLists = {
  high_risk_bridge_nodes: Type.Array(
    Type.Object({
      app: Type.String(),
      env: Type.String(),
      is_articulation_point: Flag('Always true: it joins parts otherwise apart'),
      reachable_apps: Reachable,
      direct_connections_out: Count('Applications one hop on'),
      direct_connections_in: Count('Applications one hop back'),
    }),
    { description: 'Articulation points of farthest reach, at most 10' },
  ),
  top_reachable_nodes: Type.Array(
    Type.Object({
      app: Type.String(),
      env: Type.String(),
      reachable_apps: Reachable,
      is_bridge_node: Flag('It is an articulation point'),
    }),
    { description: 'Farthest reach first, at most 20' },
  ),
  high_risk_edges: Edges('Busiest on remote administration and file sharing ports, at most 20'),
  high_risk_edges_total: Total,
  paths_from: Type.Optional(Type.Array(Type.String(), { description: 'Start nodes' })),
  max_hops: Type.Optional(Count('Most hops of a path')),
  paths: Type.Optional(
    Type.Array(
      Type.Object({ path: Type.Array(Type.String(), { description: 'app|env' }), hops: Count('Edges of the path') }),
      { description: 'Shortest path to each node reached, longest first, at most 50' },
    ),
  ),
  paths_total: Type.Optional(Total),
  truncated: Type.Optional(Flag('Fewer paths than there are')),
  path_edges: Type.Optional(Edges('Edges of these paths')),
}
