import type { KubernetesObject } from "@kubernetes/client-node";

export const GROUP = "example.com";
export const VERSION = "v1";
export const PLURAL = "sites";

/** A web site: its pages are served from a ConfigMap. */
export interface Site extends KubernetesObject {
  spec: { pages: Record<string, string>; language?: string };
  status?: { observedGeneration?: number; pages?: number };
}
