import { isSameCondition } from './describe-ven.js'
import { allTrue, isSynced, type Machine } from './join-workload.js'

/** The filters that need data from both the list of VENs and the list of workloads. */
export interface MachineFilters {
  online?: boolean
  enforcement_mode?: string
  /** A policy synchronisation state of the PCE, or `not_applied`, which stands for all states except `applied`. */
  policy_sync?: string
  health?: 'healthy' | 'unhealthy' | 'error' | 'warning'
  condition?: string
}

type Verdict = boolean | null

/**
 * For each filter, the test that a machine must pass. It returns null if the PCE's data are not sufficient to decide.
 */
const TESTS: {
  [K in keyof Required<MachineFilters>]: (machine: Machine, wanted: NonNullable<MachineFilters[K]>) => Verdict
} = {
  online: ({ online }, wanted) => (online === null ? null : online === wanted),
  enforcement_mode: ({ mode }, wanted) => (mode === null ? null : mode === wanted),
  policy_sync(machine, wanted) {
    if (machine.sync === null) return null
    return wanted === 'not_applied' ? isSynced(machine) === false : machine.sync === wanted
  },
  health({ health, isHealthWhole }, wanted) {
    const isWrong = health === 'warning' || health === 'error'
    if (wanted === 'healthy') return isWrong ? false : isHealthWhole || null
    if (wanted === 'unhealthy') return isWrong || (isHealthWhole ? false : null)
    // If not all conditions are known, an unknown one may be worse, so no severity except "error" is certain.
    if (health === 'error') return wanted === 'error'
    return isHealthWhole ? health === wanted : null
  },
  condition({ conditions, isHealthWhole }, wanted) {
    if (conditions.some(({ condition }) => isSameCondition(condition, wanted))) return true
    return isHealthWhole ? false : null
  },
}

/** Returns the names of the filters that the caller gave. */
export const givenFilters = (filters: MachineFilters): (keyof MachineFilters)[] =>
  (Object.keys(TESTS) as (keyof MachineFilters)[]).filter((name) => filters[name] !== undefined)

/** Returns whether a machine passes all given filters; null if it is not known. */
export const passes = (machine: Machine, filters: MachineFilters): Verdict =>
  allTrue(
    givenFilters(filters).map((name) =>
      (TESTS[name] as (one: Machine, wanted: unknown) => Verdict)(machine, filters[name]),
    ),
  )
