import { PceError } from './errors.js'
import type { BulkVerb, Kind, Verb } from './kinds.js'

/**
 * @param what the past participle for the message: "labels cannot be <what>".
 * @throws {PceError} `unsupported`, saying what there is, when the kind does not have the verb at that place.
 */
export function requireVerb(kind: Kind, verb: Verb, place: 'item' | 'collection', what: string): void {
  const verbs = place === 'item' ? kind.itemVerbs : kind.collectionVerbs
  if (!verbs.includes(verb)) refuse(kind, what)
}

/** @throws {PceError} `unsupported`, as `requireVerb`. */
export function requireBulk(kind: Kind, verb: BulkVerb): void {
  if (kind.bulk?.includes(verb) !== true) refuse(kind, `${verb}d in bulk`)
}

function refuse({ specName, collectionVerbs, itemVerbs, bulk }: Kind, what: string): never {
  const offered = [
    `${collectionVerbs.join(', ')} on the collection`,
    ...(itemVerbs.length > 0 ? [`${itemVerbs.join(', ')} on an object`] : []),
    ...(bulk ?? []).map((verb) => `bulk_${verb}`),
  ]
  throw new PceError('unsupported', `${specName} cannot be ${what}; the PCE offers ${offered.join('; ')}`)
}
