"""Random systems of many structures, an independent reference, and the verdict on a run; see campaign.py."""
