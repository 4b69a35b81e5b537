import type { VenImage, VenRelease } from '../../schemas/pce/software-release.js'
import type { RequestOptions } from '../types.js'
import type { Calls } from './create-calls.js'
import { segment } from './path-segment.js'

/** VEN software that the PCE holds (S9, P57). A release is named as in `22.2.0-166`. */
export interface VenReleaseOperations {
  /** Lists the releases of VEN software. */
  getVenSoftwareReleases(options?: RequestOptions): Promise<VenRelease[]>
  /** Gives one release. */
  getVenSoftwareRelease(release: string, options?: RequestOptions): Promise<VenRelease>
  /** Deletes a release. */
  deleteVenSoftwareRelease(release: string, options?: RequestOptions): Promise<void>
  /** Makes a release the one that new VENs get. */
  setDefaultVenRelease(release: string, options?: RequestOptions): Promise<void>
  /** Lists the packages of a release, one for each operating system. */
  getVenReleaseImages(release: string, options?: RequestOptions): Promise<VenImage[]>
}

export function createVenReleaseOperations(calls: Calls): VenReleaseOperations {
  const releases = `${calls.org}/software/ven/releases`
  const pathOf = (release: string) => `${releases}/${segment('release', release)}`
  return {
    getVenSoftwareReleases: (options) => calls.list<VenRelease>(releases, options),
    async getVenSoftwareRelease(release, options) {
      return calls.get<VenRelease>(pathOf(release), options)
    },
    async deleteVenSoftwareRelease(release, options) {
      await calls.delete(pathOf(release), options)
    },
    async setDefaultVenRelease(release, options) {
      await calls.put(`${releases}/default`, { release }, options)
    },
    async getVenReleaseImages(release, options) {
      return calls.list<VenImage>(`${pathOf(release)}/images`, options)
    },
  }
}
