import type { AppliedInstructions, EnforcementTargets } from '../../schemas/pce/network-device.js'
import { PceError } from '../errors.js'
import { KINDS } from '../kinds.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import { saidBy, type Calls } from './create-calls.js'

/** Operations on the instructions that a network device needs to enforce policy (S9, P55). */
export interface NetworkDeviceOperations {
  /**
   * Makes the PCE start building the enforcement instructions for a network device. When they are ready, the PCE sets
   * the device's `enforcement_instructions_data_href`. Returns the PCE's answer, or `{}` if it is empty.
   */
  requestEnforcementInstructions(deviceHref: ReferenceLike, options?: RequestOptions): Promise<Record<string, unknown>>
  /** Tells the PCE that the enforcement instructions have been applied to a network device. */
  applyEnforcementInstructions(
    deviceHref: ReferenceLike,
    data: AppliedInstructions,
    options?: RequestOptions,
  ): Promise<void>
  /**
   * Makes the PCE start building the enforcement instructions for several network devices, or for all of them if
   * `all_devices` is true.
   *
   * @throws {PceError} `invalid_href` for anything that is not a device of this organisation, `invalid_argument` for
   *   data that neither names a device nor says `all_devices: true`.
   */
  multiEnforcementInstructionsRequest(data: EnforcementTargets, options?: RequestOptions): Promise<void>
  /**
   * Tells the PCE that the enforcement instructions have been applied to several network devices, or to all of them.
   * Throws like `multiEnforcementInstructionsRequest`.
   */
  multiEnforcementInstructionsApplied(data: EnforcementTargets, options?: RequestOptions): Promise<void>
}

export function createNetworkDeviceOperations(calls: Calls): NetworkDeviceOperations {
  const device = (reference: ReferenceLike) => calls.href(KINDS.networkDevices, reference)

  /**
   * Checks the data and throws if it neither names a device nor says `all_devices: true`, because the PCE could take
   * such data for all devices.
   */
  function checkTargets(data: EnforcementTargets): EnforcementTargets {
    const devices = data.network_devices
    if (data.all_devices !== true && (devices === undefined || devices.length === 0)) {
      throw new PceError('invalid_argument', 'name at least one of network_devices, or set all_devices to true')
    }
    if (devices !== undefined) calls.hrefs(KINDS.networkDevices, devices)
    return data
  }

  return {
    async requestEnforcementInstructions(deviceHref, options) {
      const path = `${device(deviceHref)}/enforcement_instructions_request`
      return saidBy(await calls.post(path, {}, options), 'the request for instructions')
    },
    async applyEnforcementInstructions(deviceHref, data, options) {
      await calls.post(`${device(deviceHref)}/enforcement_instructions_applied`, data, options)
    },
    async multiEnforcementInstructionsRequest(data, options) {
      const path = `${calls.org}/network_devices/multi_enforcement_instructions_request`
      await calls.post(path, checkTargets(data), options)
    },
    async multiEnforcementInstructionsApplied(data, options) {
      const path = `${calls.org}/network_devices/multi_enforcement_instructions_applied`
      await calls.post(path, checkTargets(data), options)
    },
  }
}
