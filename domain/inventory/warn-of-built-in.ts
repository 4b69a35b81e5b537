import { ANY_IP_LIST_NAME, ALL_SERVICES_NAME } from '../../schemas/pce/words.js'

/** What every PCE has can be used, not changed (P17, P18): worth knowing before a dry run is believed. */
export function warnOfBuiltIn({ name }: { name: string }): string[] {
  return name === ANY_IP_LIST_NAME || name === ALL_SERVICES_NAME
    ? ['It is built in: a PCE refuses to change or delete it.']
    : []
}
