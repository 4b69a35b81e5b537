import { Type } from '@sinclair/typebox'
import { LabelReference } from './label-reference.js'

/**
 * Creates the schema of a flow's source or destination: a single reference as text or object, or labels that must all
 * match.
 */
const EndInput = (description: string) =>
  Type.Union([Type.Array(LabelReference, { minItems: 1, maxItems: 20 }), ...LabelReference.anyOf], { description })

/** The arguments that describe the flow, for every tool that answers a question about a single flow. */
export const FlowInput = {
  source: EndInput('Workload, IP, iplist:NAME or labels (ANDed)'),
  destination: EndInput('As source'),
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: 'Of tcp and udp', listed: '' })),
  proto: Type.Union([Type.String(), Type.Integer()], {
    description: 'tcp, udp, icmp or a number',
    listed: 'Name or number',
  }),
  process_name: Type.Optional(
    Type.String({ description: 'Path of the program at the destination', listed: 'At destination' }),
  ),
  windows_service_name: Type.Optional(Type.String({ description: 'Windows service at the destination', listed: '' })),
}
