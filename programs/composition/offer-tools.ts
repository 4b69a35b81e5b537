import { nearestTool } from '../../plugins/dispatcher/admit-call.js'
import { chooseTools, createOffers, namesOf, TOOLSET_NAMES, type Offers } from '../../plugins/offer/choose-tools.js'
import { narrowByHeaders } from '../../plugins/offer/read-headers.js'
import { type Config, type Fault, type OfferConfig, StartupError } from '../../schemas/config.js'
import type { Toolset } from '../../tools/define.js'
import type { ToolFacts } from '../../tools/listed-tool.js'

/** The tools that a server offers, and a function that reduces them to those that the headers of a request allow. */
export interface ServerOffers extends Offers {
  readonly narrow: ReturnType<typeof narrowByHeaders>
}

type Offering = Pick<Config, 'mode' | 'offer'>

/**
 * Returns the toolsets that are offered even if the operator did not choose them: the toolset for registering a PCE
 * key, if every user registers one (D122).
 */
const alwaysIn = ({ mode }: Offering): readonly Toolset[] => (mode === 'per_user' ? ['credentials'] : [])

/**
 * Chooses the tools that a server with this configuration offers. Throws a StartupError with the faults that
 * `findOfferFaults` returns.
 */
export function offerTools(config: Offering, tools: readonly ToolFacts[]): ServerOffers {
  const faults = findOfferFaults(config, tools)
  if (faults.length > 0) throw new StartupError(...faults)
  const { offer = {} } = config
  const always = alwaysIn(config)
  const offered = chooseTools(tools, offer, always)
  return { ...createOffers(offered, offer), narrow: narrowByHeaders({ offered, tools, always }) }
}

/**
 * Returns a fault for each setting that names an unknown tool or toolset, and one if the settings exclude every tool.
 */
export function findOfferFaults(config: Offering, tools: readonly ToolFacts[]): Fault[] {
  const { offer = {} } = config
  const unknown = (names: readonly string[] = [], known: ReadonlySet<string>) =>
    names.filter((name) => !known.has(name))
  const names = namesOf(tools)
  const faults = [
    ...faultOf(
      'MCP_TOOLSETS (or --toolsets)',
      'toolsets',
      unknown(offer.toolsets, new Set(TOOLSET_NAMES)),
      TOOLSET_NAMES,
    ),
    ...faultOf('MCP_TOOLS', 'tools', unknown(offer.tools, names), [...names]),
    ...faultOf('MCP_EXCLUDE_TOOLS', 'tools', unknown(offer.excluded, names), [...names]),
  ]
  if (faults.length > 0 || tools.length === 0 || chooseTools(tools, offer, alwaysIn(config)).length > 0) return faults
  return [
    {
      problem: `${inWords(offer)} leave no tool to offer`,
      remedy: 'Offer more, or stop this server: docs/tools.md lists the toolset and the effect of every tool.',
    },
  ]
}

function faultOf(variable: string, what: string, unknown: readonly string[], known: readonly string[]): Fault[] {
  if (unknown.length === 0) return []
  const named = unknown.map((name) => {
    const nearest = nearestTool(name, known)
    return `'${name}'${nearest === undefined ? '' : ` (did you mean '${nearest}'?)`}`
  })
  return [
    {
      problem: `${variable} names ${what} that do not exist: ${named.join(', ')}`,
      remedy: `There are ${known.join(', ')}.`,
    },
  ]
}

/** Returns the names of the settings that exclude tools, as the operator knows them. */
function inWords({ readOnly, toolsets, tools, excluded }: OfferConfig): string {
  return [
    ...(readOnly === true ? ['MCP_READ_ONLY=1'] : []),
    ...(toolsets === undefined ? [] : ['MCP_TOOLSETS']),
    ...(tools === undefined ? [] : ['MCP_TOOLS']),
    ...(excluded === undefined ? [] : ['MCP_EXCLUDE_TOOLS']),
  ].join(', ')
}

/** Warns of tools that MCP_TOOLS names although another setting excludes them. */
export function warnOfOffer(config: Offering, tools: readonly ToolFacts[]): string[] {
  const { offer = {} } = config
  const { tools: named = [], excluded = [], readOnly = false } = offer
  const offered = namesOf(chooseTools(tools, offer, alwaysIn(config)))
  const out = tools.filter(({ name }) => named.includes(name) && !offered.has(name))
  const why = (tool: ToolFacts) => {
    if (readOnly && tool.effect !== 'read') return 'MCP_READ_ONLY=1'
    return excluded.includes(tool.name) ? 'MCP_EXCLUDE_TOOLS' : `MCP_TOOLSETS does not have its toolset ${tool.toolset}`
  }
  if (out.length === 0) return []
  const listed = out.map((tool) => `${tool.name} (${why(tool)})`).join(', ')
  return [`MCP_TOOLS names tools that are still not offered: ${listed}.`]
}
