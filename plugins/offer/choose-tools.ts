import type { Role } from '../../schemas/caller.js'
import type { OfferConfig } from '../../schemas/config.js'
import type { Offer } from '../../schemas/offer.js'
import { isInDefault, TOOLSETS, type Toolset } from '../../tools/define.js'
import type { ToolFacts } from '../../tools/listed-tool.js'

/**
 * The values that are accepted as the name of a toolset. `default` means the tools that the project's owner requested,
 * and `all` means every tool.
 */
export const TOOLSET_NAMES: readonly string[] = ['default', 'all', ...Object.keys(TOOLSETS)]

/** The settings with which operators and clients choose tools. An unknown name selects nothing. */
export type Choice = Omit<OfferConfig, 'hideForbidden'>

/** Returns true if a tool belongs to one of the chosen toolsets. */
const isInToolsets = (tool: Pick<ToolFacts, 'toolset'>, { toolsets, tools }: Choice): boolean =>
  (toolsets ?? [tools === undefined ? 'default' : 'all']).some(
    (name) => name === 'all' || name === tool.toolset || (name === 'default' && isInDefault(tool)),
  )

/**
 * Returns the given tools that the choice selects. `readOnly` takes precedence over everything else, and `excluded`
 * takes precedence over `tools`. The toolsets in `always` are selected in addition to the chosen toolsets.
 */
export function chooseTools<T extends ToolFacts>(
  tools: readonly T[],
  choice: Choice,
  always: readonly Toolset[] = [],
): readonly T[] {
  const { readOnly = false, tools: named, excluded = [] } = choice
  return tools.filter(
    (tool) =>
      (always.includes(tool.toolset) || isInToolsets(tool, choice)) &&
      (named === undefined || named.includes(tool.name)) &&
      !excluded.includes(tool.name) &&
      (!readOnly || tool.effect === 'read'),
  )
}

/** The tools of one server, and the function that returns the offer for each caller. */
export interface Offers {
  /** The tools that the operator chose. A request can only narrow this choice. */
  readonly tools: readonly ToolFacts[]
  /**
   * Returns the offer for a caller with this role. `callable` contains the names of the tools to which the request has
   * narrowed the offer; it is absent if the request has not narrowed it.
   */
  offerTo(role: Role | null, callable?: ReadonlySet<string>): Offer
}

/**
 * Creates the offers of a server whose operator chose these tools. If `hideForbidden` is true, lists contain only the
 * tools that the caller's role may call.
 */
export function createOffers(tools: readonly ToolFacts[], { hideForbidden = false }: OfferConfig): Offers {
  const all = namesOf(tools)
  const whole: Offer = { listed: all, callable: all }
  return {
    tools,
    offerTo(role, callable = all) {
      if (!hideForbidden) return callable === all ? whole : { listed: callable, callable }
      const permitted = tools.filter(({ name, roles }) => callable.has(name) && role !== null && roles.includes(role))
      return { listed: namesOf(permitted), callable }
    },
  }
}

/** Returns an offer that lists all these tools and permits calls of all of them. */
export function offerWhole(tools: readonly ToolFacts[]): Offer {
  const names = namesOf(tools)
  return { listed: names, callable: names }
}

export const namesOf = (tools: readonly ToolFacts[]): ReadonlySet<string> => new Set(tools.map(({ name }) => name))
