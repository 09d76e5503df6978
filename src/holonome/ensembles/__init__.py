"""Many runs of one system: studies over parameters, starts and times, on lanes, cores, graphics cards and
clusters.
"""
